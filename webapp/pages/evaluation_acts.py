"""What organisers do with a task, an evaluation or a baseline that is there: one button each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from webapp.evaluations import services
from webapp.evaluations.models import Baseline, Evaluation, Task
from webapp.pages.acts import acting_user, attempt, back, is_for_good, organisers_only

# Of each act: what it is done to, who does it, and what is said then.
ACTS: dict[str, tuple[Any, Callable[..., object], Any]] = {
    "ask": (Task, services.ask, _("It is evaluated as soon as no other one is.")),
    "drop": (Task, services.drop, _("The task is gone, with its results.")),
    "again": (Evaluation, services.again, _("It is evaluated once more.")),
    "cancel": (Evaluation, services.cancel, _("It was cancelled.")),
    "forget": (Baseline, services.drop_baseline, _("The baseline is gone.")),
}


@require_POST
@organisers_only
def act(request: HttpRequest, number: int, act: str) -> HttpResponse:
    if act not in ACTS:
        raise Http404(f"Nothing is called {act}.")
    kind, service, done = ACTS[act]
    found, by = get_object_or_404(kind, pk=number), acting_user(request)
    task = found if kind is Task else found.task
    slug = task.collaboration.slug
    if act != "drop" or is_for_good(request):
        attempt(request, lambda: service(found, by=by), done)
    return back("evaluations", slug)
