"""One round: who took part with what, and what the strategy made of it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.live.selectors import round_of
from webapp.pages.collaboration import find
from webapp.pages.round_view import round_view


@require_safe
def show(request: HttpRequest, slug: str, round_number: int) -> HttpResponse:
    """`?part`: only what the live page puts into its own."""
    collaboration = find(request, slug)
    record = round_of(collaboration, round_number)
    if record is None:
        raise Http404(f"Nothing is known of round {round_number} of {collaboration.title}.")
    template = "parts/round.html" if "part" in request.GET else "rounds.html"
    return render(request, template, round_view(request, collaboration, record))
