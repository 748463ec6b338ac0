"""Who may do what with a collaboration: the one permission table.

Devices have one rule of their own, `devices.selectors.may_manage`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webapp.collaborations.models import Collaboration, State, Visibility
from webapp.collaborations.states import ENDED
from webapp.core.errors import UserError
from webapp.devices.models import Session


def _may_see(user: Any, collaboration: Collaboration | None) -> str:
    if collaboration is not None and collaboration.state == State.DRAFT:
        return _organises(user, collaboration)
    return ""


def lending_refusal(user: Any) -> str:
    """Why `user` may lend no device, whatever the collaboration; empty: they may."""
    if not user.is_authenticated:
        return "Sign in first."
    return f"You are banned: {user.ban_reason}" if user.is_banned else ""


def _may_join(user: Any, collaboration: Collaboration | None) -> str:
    if why := lending_refusal(user):
        return why
    if collaboration is None or collaboration.state == State.DRAFT:
        return "This collaboration is not open yet."
    if collaboration.state in ENDED:
        return f"This collaboration has {collaboration.state}."
    return ""


def _organises(user: Any, collaboration: Collaboration | None) -> str:
    if user.is_authenticated and user.is_active and user.is_organiser:
        return ""
    return "Only organisers may do this."


def _may_download(user: Any, collaboration: Collaboration | None) -> str:
    """Of checkpoints, and of what is told of them."""
    organises = not _organises(user, collaboration)
    if collaboration is None or organises:
        return ""
    if collaboration.visibility == Visibility.ORGANISERS:
        return "Only organisers see the checkpoints of this collaboration."
    if collaboration.visibility == Visibility.VOLUNTEERS and not _took_part(user, collaboration):
        return "Only people who lent a device see the checkpoints of this collaboration."
    return _may_see(user, collaboration)


def _took_part(user: Any, collaboration: Collaboration) -> bool:
    if lending_refusal(user):
        return False
    return Session.objects.filter(collaboration=collaboration, device__owner=user).exists()


TABLE: dict[str, Callable[[Any, Collaboration | None], str]] = {
    "see": _may_see,
    "join": _may_join,
    "download": _may_download,
    "create": _organises,
    "edit": _organises,
    "open": _organises,
    "delete": _organises,
    "pause": _organises,
    "resume": _organises,
    "finish": _organises,
    "keep": _organises,
    "revoke": _organises,
    "ban": _organises,
    "audit": _organises,
}


def refusal(user: Any, action: str, collaboration: Collaboration | None = None) -> str:
    """Why `user` may not do `action`, in words; empty: they may."""
    return TABLE[action](user, collaboration)


def require(user: Any, action: str, collaboration: Collaboration | None = None) -> None:
    """Raises UserError, kind `forbidden`, with why they may not."""
    if why := refusal(user, action, collaboration):
        raise UserError(why, kind="forbidden")


def may(user: Any, action: str, collaboration: Collaboration | None = None) -> bool:
    return not refusal(user, action, collaboration)
