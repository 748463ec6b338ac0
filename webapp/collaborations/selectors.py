"""Reads about collaborations."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from webapp.collaborations.models import Collaboration, State


def visible_collaborations(viewer: Any = None) -> QuerySet[Collaboration]:
    """Drafts are for organisers only; everything else is for everybody."""
    everything = Collaboration.objects.all()
    if viewer is not None and viewer.is_authenticated and viewer.is_organiser:
        return everything
    return everything.exclude(state=State.DRAFT)


def collaboration_by_slug(slug: str, *, viewer: Any = None) -> Collaboration:
    """Raises Collaboration.DoesNotExist also for one the viewer may not see."""
    return visible_collaborations(viewer).get(slug=slug)
