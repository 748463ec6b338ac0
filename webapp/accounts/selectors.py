"""The one rule for which name of a person another person may see."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Q

from webapp.accounts.models import User

PAGE_SIZE = 50
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


def people(query: str = "", page: int | str = 1) -> Page[User]:
    """For organisers: everybody whose name or e-mail contains `query`, banned people first."""
    found = User.objects.exclude(email=SYSTEM_EMAIL)
    if query:
        found = found.filter(Q(name__icontains=query) | Q(email__icontains=query))
    return Paginator(found.order_by("-ban_reason", "name"), PAGE_SIZE).get_page(page)


def is_system(user: User) -> bool:
    """Whether this account is the site's own: it owns the coordinators and is shown nowhere."""
    return user.email == SYSTEM_EMAIL
