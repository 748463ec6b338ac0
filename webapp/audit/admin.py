from __future__ import annotations

from django.contrib import admin

from webapp.audit.models import Entry
from webapp.core.admin import ReadOnly


@admin.register(Entry)
class EntryAdmin(ReadOnly):
    list_display = ("at", "actor_name", "action", "target", "subject")
    list_filter = ("action",)
    search_fields = ("subject", "target", "action", "actor_name")
    date_hierarchy = "at"
