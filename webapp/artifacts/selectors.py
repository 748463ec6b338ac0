"""Reads about files and checkpoints."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from webapp.artifacts.models import OF_CHECKPOINTS, Artifact, Checkpoint, Kind
from webapp.collaborations import access
from webapp.collaborations.models import Collaboration


def newest_checkpoint(collaboration: Collaboration) -> Checkpoint | None:
    return checkpoints(collaboration).first()


def checkpoints(collaboration: Collaboration) -> QuerySet[Checkpoint]:
    """Those that are kept, newest first."""
    return collaboration.checkpoints.filter(artifact__isnull=False).select_related("artifact")


def checkpoint_by_sha256(sha256: str) -> Checkpoint | None:
    """One that is kept."""
    found = Checkpoint.objects.select_related("artifact", "collaboration")
    return found.filter(artifact__sha256=sha256).first()


def owners_of(artifact: Artifact) -> list[Collaboration] | None:
    """Whose checkpoint it is; None for what is no collaboration's, and everybody's."""
    if artifact.kind not in OF_CHECKPOINTS:
        return None
    named = Q(artifact=artifact) | Q(model=artifact)
    rows = Checkpoint.objects.filter(named).select_related("collaboration")
    return [row.collaboration for row in rows]


def download_refusal(user: Any, artifact: Artifact) -> str:
    """Why `user` may not have this file, in words; "" where they may."""
    owners = owners_of(artifact)
    if owners is None:
        return ""
    refusals = [access.refusal(user, "download", one) for one in owners]
    return "" if "" in refusals else next(iter(refusals), "Nobody needs this file any more.")


def tokenizers() -> QuerySet[Artifact]:
    return Artifact.objects.filter(kind=Kind.TOKENIZER).order_by("title", "pk")


def texts() -> QuerySet[Artifact]:
    return Artifact.objects.filter(kind=Kind.TEXT).order_by("title", "pk")
