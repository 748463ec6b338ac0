from __future__ import annotations

from django.contrib import admin

from webapp.core.admin import ReadOnly
from webapp.credit.models import HourlyCredit, Receipt


@admin.register(Receipt)
class ReceiptAdmin(ReadOnly):
    list_display = ("at", "session", "round", "samples", "tokens", "accepted", "reason")
    list_filter = ("accepted", "session__collaboration")
    search_fields = ("session__id", "session__device__name", "session__device__owner__name")
    list_select_related = ("session",)
    show_full_result_count = False  # counting millions of receipts takes seconds


@admin.register(HourlyCredit)
class HourlyCreditAdmin(ReadOnly):
    list_display = ("hour", "collaboration", "user", "device", "samples", "tokens", "rounds")
    list_filter = ("collaboration",)
    search_fields = ("user__name", "device__name")
    list_select_related = ("collaboration", "user", "device")
    date_hierarchy = "hour"
    show_full_result_count = False
