from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from webapp.collaborations.models import Collaboration, Revision
from webapp.core.admin import ReadOnly


@admin.register(Collaboration)
class CollaborationAdmin(admin.ModelAdmin):
    """Texts may be corrected here. States are changed in the console, which checks and records."""

    list_display = ("title", "slug", "state", "organiser", "round", "created_at")
    list_filter = ("state",)
    search_fields = ("title", "slug", "organiser__name")
    list_select_related = ("organiser",)
    fields = (
        "title",
        "summary",
        "text_credit",
        "slug",
        "state",
        "state_reason",
        "organiser",
        "round",
        "swarm_port",
        "created_at",
        "started_at",
        "finished_at",
    )

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> list[str]:
        return [name for name in self.fields if name not in ("title", "summary", "text_credit")]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Revision)
class RevisionAdmin(ReadOnly):
    list_display = ("collaboration", "number", "sha256", "created_at")
    list_filter = ("collaboration",)
    search_fields = ("sha256", "collaboration__title")
    list_select_related = ("collaboration",)
