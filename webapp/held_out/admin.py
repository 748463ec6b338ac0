from __future__ import annotations

from django.contrib import admin

from webapp.core.admin import ReadOnly
from webapp.held_out.models import Part


@admin.register(Part)
class PartAdmin(ReadOnly):
    list_display = ("checkpoint", "number", "device", "expires_at", "loss_sum", "tokens")
    list_filter = ("checkpoint__collaboration",)
    search_fields = ("device__name", "device__owner__name")
    list_select_related = ("checkpoint", "device")
