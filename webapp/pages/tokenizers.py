"""The organisers' tokenizers: make one from the site's texts, and see what it does with a text."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from trainer.tokenizing import PURPOSES, STEPS, Wanted
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.selectors import texts
from webapp.core.errors import UserError
from webapp.core.jobs import State
from webapp.pages.acts import acting_user, attempt, back, organisers_only
from webapp.pages.job_state import LOOKS
from webapp.tokenizers import selectors, services
from webapp.tokenizers.forms import MakingForm, PreviewForm
from webapp.tokenizers.models import Making
from webapp.tokenizers.preview import preview

MOST_SHOWN = 1_000  # pieces


@require_http_methods(["GET", "HEAD", "POST"])
@organisers_only
def show(request: HttpRequest) -> HttpResponse:
    """`?like=<number>`: filled in as that one was wanted."""
    like = _like(request.GET.get("like", ""))
    form = MakingForm(request.POST if request.method == "POST" else None, like=like)
    if request.method == "POST" and form.is_valid() and (made := _started(request, form)):
        return back("making", made.pk)
    context = {
        "form": form,
        "page": selectors.finished(request.GET.get("page", 1)),
        "makings": [(one, *LOOKS[State(one.state)]) for one in selectors.unfinished()],
        "has_texts": texts().exists(),
    }
    return render(request, "tokenizers.html", context)


def _like(number: str) -> Wanted | None:
    found = Making.objects.filter(pk=int(number)).first() if number.isdecimal() else None
    return found.wanted if found else None


def _started(request: HttpRequest, form: MakingForm) -> Making | None:
    """None: it was not, and the form says why."""
    chosen, title = list(form.cleaned_data["texts"]), form.cleaned_data["title"]
    try:
        return services.start(form.wanted, chosen, title=title, by=acting_user(request))
    except UserError as error:
        form.add_error(None, str(error))
        return None


@require_safe
@organisers_only
def making(request: HttpRequest, making_id: int) -> HttpResponse:
    found = get_object_or_404(Making.objects.select_related("organiser", "artifact"), pk=making_id)
    context = {"making": found, "texts": found.texts.order_by("pk"), **_described(found)}
    return render(request, "tokenizer_making.html", context | _progress(found))


@require_safe
@organisers_only
def progress(request: HttpRequest, making_id: int) -> HttpResponse:
    return JsonResponse(_progress(get_object_or_404(Making, pk=making_id)))


def _progress(found: Making) -> dict[str, Any]:
    return {"state": found.state, "doing": found.doing, "percent": round(100 * found.share)}


def _described(found: Making) -> dict[str, Any]:
    wanted = found.wanted
    return {
        "wanted": wanted,
        "purpose": PURPOSES[wanted.purpose],
        "left_out": [STEPS[name] for name in wanted.without],
    }


@require_POST
@organisers_only
def cancel(request: HttpRequest, making_id: int) -> HttpResponse:
    found, by = get_object_or_404(Making, pk=making_id), acting_user(request)
    attempt(request, lambda: services.cancel(found, by=by), _("It was cancelled."))
    return back("making", making_id)


@require_http_methods(["GET", "HEAD", "POST"])
@organisers_only
def tokenizer(request: HttpRequest, artifact_id: int) -> HttpResponse:
    """One tokenizer, and what it makes of a text that is posted."""
    found = get_object_or_404(Artifact, pk=artifact_id, kind=Kind.TOKENIZER)
    form = PreviewForm(request.POST if request.method == "POST" else None)
    context: dict[str, Any] = {"tokenizer": found, "form": form}
    if request.method == "POST" and form.is_valid():
        try:
            shown = preview(found, form.cleaned_data["text"])
        except UserError as error:
            form.add_error(None, str(error))
        else:
            context |= {
                "shown": shown,
                "tokens": shown["tokens"][:MOST_SHOWN],
                "num_hidden": max(0, len(shown["tokens"]) - MOST_SHOWN),
                "unknown_percent": 100 * shown["unknown_share"],
            }
    if how := selectors.making_of(found):
        context |= {"making": how, **_described(how)}
    return render(request, "tokenizer.html", context)
