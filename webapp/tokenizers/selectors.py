"""Reads about tokenizers and how they were made."""

from __future__ import annotations

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet

from webapp.artifacts.models import Artifact
from webapp.artifacts.selectors import tokenizers
from webapp.core.jobs import State
from webapp.tokenizers.models import Making

PAGE_SIZE = 25


def finished(page: int | str = 1) -> Page[Artifact]:
    """All tokenizers of the site; a page number out of range gives the nearest page."""
    return Paginator(tokenizers(), PAGE_SIZE).get_page(page)


def unfinished() -> QuerySet[Making]:
    """Newest first: those that wait or are being made, and the last that came to nothing."""
    rows = Making.objects.exclude(state=State.FINISHED).select_related("organiser")
    return rows[:PAGE_SIZE]


def making_of(artifact: Artifact) -> Making | None:
    """How it came about; None for one that came from elsewhere."""
    return Making.objects.filter(artifact=artifact).order_by("pk").first()
