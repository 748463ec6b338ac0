from __future__ import annotations

from django.contrib import admin

from webapp.core.admin import ReadOnly
from webapp.registry.models import Packing, Push


@admin.register(Packing)
class PackingAdmin(ReadOnly):
    list_display = ("title", "state", "reason", "organiser", "created_at")
    list_filter = ("state",)
    search_fields = ("title",)
    list_select_related = ("organiser",)


@admin.register(Push)
class PushAdmin(ReadOnly):
    list_display = ("title", "repository", "state", "reason", "address", "created_at")
    list_filter = ("state",)
    search_fields = ("title", "repository")
