from __future__ import annotations

from django.contrib import admin

from webapp.core.admin import ReadOnly
from webapp.tokenizers.models import Making


@admin.register(Making)
class MakingAdmin(ReadOnly):
    list_display = ("title", "organiser", "state", "reason", "created_at")
    list_filter = ("state",)
    search_fields = ("title",)
    list_select_related = ("organiser",)
