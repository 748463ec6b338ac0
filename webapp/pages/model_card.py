"""What a model is, as its description says that goes along with it, and where it was pushed."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from webapp.artifacts.models import Checkpoint
from webapp.artifacts.selectors import checkpoints
from webapp.collaborations import access
from webapp.core.jobs import State
from webapp.pages.acts import acting_user, attempt, back, organisers_only
from webapp.pages.collaboration import find
from webapp.pages.docs import as_html
from webapp.pages.job_state import LOOKS
from webapp.registry import pushing
from webapp.registry.card import card
from webapp.registry.models import Push
from webapp.registry.pushing import UNSET


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
    if access.may(request.user, "keep", checkpoint.collaboration):
        pushes = checkpoint.pushes.select_related("organiser")
        context |= {
            "organises": True,
            "hub": settings.HUB_URL,
            "no_token": "" if settings.HUB_TOKEN else UNSET,
            "pushes": [(one, *LOOKS[State(one.state)]) for one in pushes],
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


@require_POST
@organisers_only
def push(request: HttpRequest, number: int) -> HttpResponse:
    """A failed one is pushed again by the same form."""
    found = get_object_or_404(Checkpoint.objects.select_related("collaboration"), pk=number)
    repository = request.POST.get("repository", "").strip()
    is_private, by = request.POST.get("is_private") == "on", acting_user(request)
    done = _("It is pushed as soon as no other one is.")
    attempt(request, lambda: pushing.ask(found, repository, is_private=is_private, by=by), done)
    return back("model_card", found.collaboration.slug, number)


@require_POST
@organisers_only
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    found = get_object_or_404(Push.objects.select_related("checkpoint__collaboration"), pk=number)
    by = acting_user(request)
    attempt(request, lambda: pushing.cancel(found, by=by), _("It was cancelled."))
    return back("model_card", found.checkpoint.collaboration.slug, found.checkpoint_id)


def _find(request: HttpRequest, slug: str, number: int) -> Checkpoint:
    """One that is kept. Raises Http404, and PermissionDenied where it is not for the visitor."""
    collaboration = find(request, slug)
    if why := access.refusal(request.user, "download", collaboration):
        raise PermissionDenied(why)
    found = checkpoints(collaboration).select_related("collaboration").filter(pk=number).first()
    if found is None:
        raise Http404("There is no such checkpoint any more.")
    return found
