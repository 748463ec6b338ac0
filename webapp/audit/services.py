"""Writes the audit log: one row in the caller's transaction."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model

from webapp.audit.models import Entry, key_of

DELETED = "a deleted account"


def record(
    *, actor: Any, action: str, subject: Model | str, detail: dict[str, Any] | None = None
) -> Entry:
    """`subject` is kept as kind and key (`device 3f9…`) and, beside it, as what it is called now,
    so that no later rename rewrites what happened. `actor` None: the site itself did it.
    """
    names: dict[str, Any] = {"actor_name": str(actor) if actor else "", "target": str(subject)}
    if isinstance(subject, Model):
        owner = subject if isinstance(subject, get_user_model()) else None
        if (belongs_to := getattr(subject, "owner", None)) is not None:
            owner = belongs_to
            names["target"] = f"{subject} of {owner}"
        names["about"] = owner
        subject = key_of(subject)
    return Entry.objects.create(
        actor=actor, action=action, subject=subject, detail=detail or {}, **names
    )


def forget(user: Any) -> None:
    """Takes the person out of the log before the account goes: what was done stays."""
    Entry.objects.filter(actor=user).update(actor_name=DELETED)
    about = Entry.objects.filter(about=user)
    about.update(target=DELETED)
    about.filter(action="account.renamed").update(detail={})  # it tells the names
