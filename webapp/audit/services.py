"""Writes the audit log: one row in the caller's transaction."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from webapp.audit.models import Entry


def record(
    *, actor: Any, action: str, subject: Model | str, detail: dict[str, Any] | None = None
) -> Entry:
    """`subject` is kept as kind and key (`device 3f9…`), never by name, so that a deleted
    account leaves no name behind. `actor` None: the site itself did it.
    """
    if isinstance(subject, Model):
        subject = f"{subject._meta.model_name} {getattr(subject, 'slug', subject.pk)}"
    return Entry.objects.create(actor=actor, action=action, subject=subject, detail=detail or {})
