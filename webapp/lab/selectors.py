"""Reads the lab's experiments."""

from __future__ import annotations

from django.core.paginator import Page, Paginator

from webapp.lab.models import Trial

PAGE_SIZE = 25


def trials(page: int | str = 1) -> Page[Trial]:
    """Newest first; a page number out of range gives the nearest page."""
    found = Trial.objects.defer("result").select_related("organiser")
    return Paginator(found, PAGE_SIZE).get_page(page)
