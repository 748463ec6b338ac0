"""Reads the audit log."""

from __future__ import annotations

from django.core.paginator import Page, Paginator
from django.db.models import Model

from webapp.audit.models import Entry, key_of

PAGE_SIZE = 50


def entries(page: int | str = 1) -> Page[Entry]:
    """Newest first; a page number out of range gives the nearest page."""
    return Paginator(Entry.objects.all(), PAGE_SIZE).get_page(page)


def newest_entry(subject: Model, action: str) -> Entry | None:
    """When this was last done to it, and by whom."""
    return Entry.objects.filter(subject=key_of(subject), action=action).first()
