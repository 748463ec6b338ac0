from __future__ import annotations

from django.contrib import admin

from webapp.core.admin import ReadOnly
from webapp.devices.models import Device, EnrolmentCode, Session


@admin.register(Device)
class DeviceAdmin(ReadOnly):
    list_display = ("name", "owner", "created_at", "last_seen_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("name", "owner__name", "id")
    list_select_related = ("owner",)
    exclude = ("token_hash",)


@admin.register(EnrolmentCode)
class EnrolmentCodeAdmin(ReadOnly):
    list_display = ("device_name", "owner", "collaboration", "created_at", "expires_at", "used_at")
    list_filter = (("used_at", admin.EmptyFieldListFilter), "collaboration")
    search_fields = ("device_name", "owner__name")
    list_select_related = ("owner", "collaboration")
    exclude = ("code_hash",)


@admin.register(Session)
class SessionAdmin(ReadOnly):
    list_display = ("id", "device", "collaboration", "role", "started_at", "ended_at", "end_cause")
    list_filter = ("end_cause", "role", "collaboration")
    search_fields = ("id", "device__name", "device__owner__name")
    list_select_related = ("device", "collaboration")
    date_hierarchy = "started_at"
