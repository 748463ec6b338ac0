"""The one rule for which name of a person another person may see."""

from __future__ import annotations

from typing import Any

from webapp.accounts.models import User

ANONYMOUS = "anonymous"
SYSTEM_EMAIL = "coordinator@system.invalid"


def public_name(user: User | None, *, viewer: Any = None) -> str:
    """`anonymous` for a deleted or unlisted account, but to its owner and to organisers.

    `viewer` None or not logged in: what anybody may see (pages, JSON, CSV, websocket frames).
    """
    if user is None:
        return ANONYMOUS
    if user.is_listed or (viewer is not None and sees_names(viewer, user)):
        return user.name
    return ANONYMOUS


def sees_names(viewer: Any, user: User) -> bool:
    return viewer.is_authenticated and (viewer.pk == user.pk or viewer.is_organiser)


def is_system(user: User) -> bool:
    """Whether this account is the site's own: it owns the coordinators and is shown nowhere."""
    return user.email == SYSTEM_EMAIL
