from __future__ import annotations

from django.contrib import admin

from webapp.audit.models import Entry
from webapp.core.admin import ReadOnly


@admin.register(Entry)
class EntryAdmin(ReadOnly):
    list_display = ("at", "actor", "action", "subject")
    list_filter = ("action",)
    search_fields = ("subject", "action", "actor__name")
    list_select_related = ("actor",)
    date_hierarchy = "at"
