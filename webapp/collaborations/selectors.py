"""Reads about collaborations."""

from __future__ import annotations

import hashlib
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


def version_of(draft: Collaboration) -> str:
    """Follows from its content: tells whether a draft is still what somebody looked at."""
    content = "\n".join([draft.title, draft.summary, draft.revision.sha256])
    return hashlib.sha256(content.encode()).hexdigest()[:16]
