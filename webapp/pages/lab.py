"""The organisers' lab: which strategy holds up on data like mine?"""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from trainer.experiment import TOPICS
from webapp.core.errors import UserError
from webapp.lab import services
from webapp.lab.forms import ExperimentForm
from webapp.lab.models import State, Trial
from webapp.lab.selectors import trials
from webapp.pages.acts import acting_user, attempt, back, is_for_good, organisers_only
from webapp.pages.job_state import LOOKS

BASELINES = {
    "local-only": gettext_lazy("Each volunteer alone"),
    "centralised": gettext_lazy("All texts on one machine"),
}


@require_http_methods(["GET", "HEAD", "POST"])
@organisers_only
def show(request: HttpRequest) -> HttpResponse:
    """`?like=<number>`: filled in as that experiment is."""
    like = _like(request.GET.get("like", ""))
    form = ExperimentForm(request.POST if request.method == "POST" else None, like=like)
    if request.method == "POST" and form.is_valid() and (made := _started(request, form)):
        return back("trial", made.pk)
    page = trials(request.GET.get("page", 1))
    rows = [(one, *LOOKS[State(one.state)]) for one in page]
    context = {"form": form, "page": page, "trials": rows, "num_topics": TOPICS}
    return render(request, "lab.html", context)


def _like(number: str) -> Any:
    found = Trial.objects.filter(pk=int(number)).first() if number.isdecimal() else None
    return found.experiment if found else None


def _started(request: HttpRequest, form: ExperimentForm) -> Trial | None:
    """None: it was not, and the form says why."""
    assert form.experiment is not None, "this comes after is_valid()"
    try:
        title = form.cleaned_data["title"]
        return services.start(form.experiment, title=title, by=acting_user(request))
    except UserError as error:
        form.add_error(None, str(error))
        return None


@require_safe
@organisers_only
def trial(request: HttpRequest, trial_id: int) -> HttpResponse:
    found = get_object_or_404(Trial.objects.select_related("organiser"), pk=trial_id)
    result = found.result or {}
    context = {
        "trial": found,
        "experiment": found.experiment,
        "rows": [row | {"label": label_of(row["name"])} for row in result.get("summary", [])],
        "runs": _curves(result),
        "conclusion": result.get("conclusion", ""),
        "topics_of_each": result.get("topics_of_each", []),
        "num_before": found.num_before,
        "minutes": services.minutes_of(found.experiment),
        "plan_json": json.dumps(found.plan, indent=2),
    }
    return render(request, "lab_trial.html", context | _progress(found))


def label_of(name: str) -> str:
    """Strategies are called as people know them, baselines by a word of the program."""
    return str(BASELINES.get(name, name))


def _curves(result: dict[str, Any]) -> list[dict[str, Any]]:
    """For the chart: the runs, without what is in the table."""
    runs = result.get("runs", [])
    kept = ("name", "seed", "curve")
    return [
        {key: run[key] for key in kept} | {"label": label_of(run["name"])}
        | {"is_baseline": run["name"] in BASELINES}
        for run in runs
    ]  # fmt: skip


@require_safe
@organisers_only
def progress(request: HttpRequest, trial_id: int) -> HttpResponse:
    found = get_object_or_404(Trial.objects.defer("result"), pk=trial_id)
    return JsonResponse(_progress(found))


def _progress(found: Trial) -> dict[str, Any]:
    """`percent` of the rounds of all runs."""
    percent = 100 * min(found.rounds_done / found.num_rounds, 1)
    return {"state": found.state, "doing": found.doing, "percent": round(percent)}


@require_safe
@organisers_only
def plan(request: HttpRequest, trial_id: int) -> HttpResponse:
    """What `python -m trainer simulate` takes."""
    found = get_object_or_404(Trial, pk=trial_id)
    return _file(found.plan, f"experiment-{trial_id}.json")


@require_safe
@organisers_only
def result(request: HttpRequest, trial_id: int) -> HttpResponse:
    found = get_object_or_404(Trial, pk=trial_id)
    if found.result is None:
        raise Http404(f"{found.title} has no result yet.")
    return _file(found.result, f"experiment-{trial_id}.result.json")


def _file(content: dict[str, Any], filename: str) -> HttpResponse:
    answer = HttpResponse(json.dumps(content, indent=1), content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="{filename}"'
    return answer


@require_POST
@organisers_only
def cancel(request: HttpRequest, trial_id: int) -> HttpResponse:
    found, by = get_object_or_404(Trial, pk=trial_id), acting_user(request)
    attempt(request, lambda: services.cancel(found, by=by), _("It was cancelled."))
    return back("trial", trial_id)


@require_POST
@organisers_only
def delete(request: HttpRequest, trial_id: int) -> HttpResponse:
    found, by = get_object_or_404(Trial, pk=trial_id), acting_user(request)
    if is_for_good(request) and attempt(
        request, lambda: services.delete(found, by=by), _("It was deleted.")
    ):
        return back("lab")
    return back("trial", trial_id)
