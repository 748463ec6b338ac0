"""What a model is, as its description says that goes along with it."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.artifacts.models import Checkpoint
from webapp.artifacts.selectors import checkpoints
from webapp.collaborations import access
from webapp.pages.collaboration import find
from webapp.pages.docs import as_html
from webapp.registry.card import card


@require_safe
def show(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    checkpoint = _find(request, slug, number)
    metadata, body = card(checkpoint).removeprefix("---\n").split("\n---\n", 1)
    context = {
        "collaboration": checkpoint.collaboration,
        "checkpoint": checkpoint,
        "body": as_html(body),
        "metadata": metadata,
    }
    return render(request, "model_card.html", context)


@require_safe
def download(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """README.md, as a hub wants it."""
    answer = HttpResponse(
        card(_find(request, slug, number)), content_type="text/markdown; charset=utf-8"
    )
    answer["Content-Disposition"] = 'attachment; filename="README.md"'
    answer["Cache-Control"] = "private, no-cache"
    return answer


def _find(request: HttpRequest, slug: str, number: int) -> Checkpoint:
    """One that is kept. Raises Http404, and PermissionDenied where it is not for the visitor."""
    collaboration = find(request, slug)
    if why := access.refusal(request.user, "download", collaboration):
        raise PermissionDenied(why)
    found = checkpoints(collaboration).select_related("collaboration").filter(pk=number).first()
    if found is None:
        raise Http404("There is no such checkpoint any more.")
    return found
