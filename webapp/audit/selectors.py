"""Reads the audit log."""

from __future__ import annotations

from django.core.paginator import Page, Paginator

from webapp.audit.models import Entry

PAGE_SIZE = 50


def entries(page: int | str = 1) -> Page[Entry]:
    """Newest first; a page number out of range gives the nearest page."""
    return Paginator(Entry.objects.all(), PAGE_SIZE).get_page(page)
