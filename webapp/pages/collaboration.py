"""One collaboration, live: is it healthy, and is it getting better?"""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from trainer.catalogue import adapter_of
from webapp.artifacts.selectors import checkpoints
from webapp.collaborations import access
from webapp.collaborations.models import Collaboration
from webapp.collaborations.selectors import collaboration_by_slug
from webapp.collaborations.sizes import size_of
from webapp.held_out.selectors import newest_evaluation
from webapp.live.selectors import round_of
from webapp.pages.live_view import live_view
from webapp.pages.round_view import round_view

CHECKPOINTS_SHOWN = 10


@require_safe
def show(request: HttpRequest, slug: str) -> HttpResponse:
    collaboration = find(request, slug)
    hidden = access.refusal(request.user, "download", collaboration)
    written = checkpoints(collaboration)
    live = live_view(request, collaboration)
    recipe = collaboration.recipe
    size = size_of(recipe)
    each_bytes = size.coordinator_bytes
    return render(
        request,
        "collaboration.html",
        live
        | round_view(request, collaboration, round_of(collaboration))
        | {
            "coordinator_bytes": each_bytes,
            "all_devices_bytes": each_bytes * live["snapshot"]["online"],
            "hidden_checkpoints": hidden,
            "checkpoints": [] if hidden else written[:CHECKPOINTS_SHOWN],
            "num_checkpoints": written.count(),
            "recipe": recipe,
            "adapter": adapter_of(recipe),
            "evaluation": newest_evaluation(collaboration),
            "trained_parameters": size.parameters,
            "may_join": may_join(request, collaboration),
        },
    )


def find(request: HttpRequest, slug: str) -> Collaboration:
    """Raises Http404 also for a draft that the visitor may not see."""
    try:
        return collaboration_by_slug(slug, viewer=request.user)
    except Collaboration.DoesNotExist:
        raise Http404(f"There is no collaboration called {slug}.") from None


def may_join(request: HttpRequest, collaboration: Collaboration) -> bool:
    """Whether to show the button: visitors may press it, and are then asked to log in."""
    if not request.user.is_authenticated:
        return collaboration.state in ("open", "running", "paused")
    return access.may(request.user, "join", collaboration)
