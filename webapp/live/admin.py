from __future__ import annotations

from django.contrib import admin

from webapp.core.admin import ReadOnly
from webapp.live.models import Event, Minute, RoundRecord


@admin.register(RoundRecord)
class RoundRecordAdmin(ReadOnly):
    list_display = ("collaboration", "round", "outcome", "members", "samples", "loss", "at")
    list_filter = ("collaboration", "outcome")
    list_select_related = ("collaboration",)


@admin.register(Event)
class EventAdmin(ReadOnly):
    list_display = ("at", "collaboration", "what", "text", "device")
    list_filter = ("collaboration", "what")
    list_select_related = ("collaboration", "device")
    date_hierarchy = "at"


@admin.register(Minute)
class MinuteAdmin(ReadOnly):
    list_display = ("at", "collaboration", "peers", "samples_per_s")
    list_filter = ("collaboration",)
    list_select_related = ("collaboration",)
