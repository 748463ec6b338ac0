"""What organisers do with one checkpoint: one button each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from webapp.artifacts.models import Checkpoint
from webapp.pages.acts import acting_user, attempt, back, organisers_only
from webapp.registry import packing, services

# Of each act: who does it, and what is said then.
ACTS: dict[str, tuple[Callable[..., object], Any]] = {
    "pin": (services.pin, _("It stays until it is unpinned.")),
    "pack": (packing.ask, _("It is made into a model as soon as no other one is.")),
    "unpin": (services.unpin, _("It stays as long as another rule keeps it.")),
}


@require_POST
@organisers_only
def act(request: HttpRequest, number: int, act: str) -> HttpResponse:
    if act not in ACTS:
        raise Http404(f"Nothing is called {act}.")
    service, done = ACTS[act]
    found = get_object_or_404(Checkpoint.objects.select_related("collaboration"), pk=number)
    by = acting_user(request)
    attempt(request, lambda: service(found, by=by), done)
    return back("checkpoints", found.collaboration.slug)
