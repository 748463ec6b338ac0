"""Reads about files and checkpoints."""

from __future__ import annotations

from django.db.models import QuerySet

from webapp.artifacts.models import Artifact, Checkpoint, Kind
from webapp.collaborations.models import Collaboration


def newest_checkpoint(collaboration: Collaboration) -> Checkpoint | None:
    return collaboration.checkpoints.select_related("artifact").first()


def checkpoints(collaboration: Collaboration) -> QuerySet[Checkpoint]:
    """Newest first."""
    return collaboration.checkpoints.select_related("artifact")


def checkpoint_by_sha256(sha256: str) -> Checkpoint | None:
    found = Checkpoint.objects.select_related("artifact", "collaboration")
    return found.filter(artifact__sha256=sha256).first()


def tokenizers() -> QuerySet[Artifact]:
    return Artifact.objects.filter(kind=Kind.TOKENIZER).order_by("title", "pk")


def texts() -> QuerySet[Artifact]:
    return Artifact.objects.filter(kind=Kind.TEXT).order_by("title", "pk")
