from __future__ import annotations

from django.contrib import admin

from webapp.artifacts.models import Artifact, Checkpoint
from webapp.core.admin import ReadOnly


@admin.register(Artifact)
class ArtifactAdmin(ReadOnly):
    list_display = ("__str__", "kind", "size_bytes", "sha256", "created_at")
    list_filter = ("kind",)
    search_fields = ("title", "filename", "sha256")


@admin.register(Checkpoint)
class CheckpointAdmin(ReadOnly):
    list_display = ("collaboration", "round", "loss", "artifact", "created_at")
    list_filter = ("collaboration",)
    search_fields = ("collaboration__title", "artifact__sha256")
    list_select_related = ("collaboration", "artifact")
