from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from webapp.audit.models import Entry


@admin.register(Entry)
class EntryAdmin(admin.ModelAdmin):
    list_display = ("at", "actor", "action", "subject")
    list_filter = ("action",)
    search_fields = ("subject", "action", "actor__name")
    list_select_related = ("actor",)
    date_hierarchy = "at"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Entry | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Entry | None = None) -> bool:
        return False
