"""What a collaboration's checkpoints are worth, task by task, beside what others reached."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from webapp.artifacts.selectors import newest_checkpoint
from webapp.collaborations import access
from webapp.core.errors import UserError
from webapp.core.jobs import State
from webapp.core.text import one_line
from webapp.evaluations import data, services
from webapp.evaluations.forms import BaselineForm, TaskForm
from webapp.evaluations.models import Task
from webapp.evaluations.selectors import Table, tables
from webapp.pages.acts import acting_user, back
from webapp.pages.collaboration import find
from webapp.pages.job_state import LOOKS

MOST_TOLD = 500  # characters


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Everybody who may see the checkpoints sees the tables; organisers enter tasks and baselines:
    what is posted is a baseline of the task that `baseline` names, or a new task."""
    collaboration = find(request, slug)
    if request.method == "POST" and (why := access.refusal(request.user, "create")):
        raise PermissionDenied(why)
    if why := access.refusal(request.user, "download", collaboration):
        context = {"collaboration": collaboration, "refusal": why}
        return render(request, "evaluations.html", context, status=403)
    given = request.POST if request.method == "POST" else None
    for_task = given.get("baseline", "") if given else ""
    form = TaskForm(collaboration, None if for_task else given)
    found = tables(collaboration)
    shown = [(one, _baseline_form(one.task, for_task, given), _lines(one)) for one in found]
    if given and _entered(request, form, [pair[1] for pair in shown]):
        return back("evaluations", slug)
    context = {
        "collaboration": collaboration,
        "tables": shown,
        "form": form,
        "organises": access.may(request.user, "create"),
        "has_data": bool(data.choices()),
        "data_folder": data.folder(),
        "newest": newest_checkpoint(collaboration),
    }
    return render(request, "evaluations.html", context)


def _baseline_form(task: Task, for_task: str, given: Any) -> BaselineForm:
    return BaselineForm(task, given if for_task == str(task.pk) else None)


def _lines(table: Table) -> list[tuple[Any, str, str]]:
    """Of checkpoints, with the tone and glyph of their state."""
    rows = ((line, line.evaluation) for line in table.checkpoints)
    return [(line, *LOOKS[State(one.state)]) for line, one in rows if one is not None]


def _gone(given: QueryDict) -> str:
    """With what was typed, which no form shows any more."""
    prefix = f"baseline-{given['baseline']}"
    typed = (given.get(f"{prefix}-{name}", "") for name in BaselineForm.Meta.fields)
    kept = one_line(", ".join(filter(None, typed)), MOST_TOLD)
    return _(
        "There is no such task any more, so this baseline was not entered: %(kept)s. "
        "Enter it with another task."
    ) % {"kept": kept or "–"}


def _entered(request: HttpRequest, form: TaskForm, baselines: list[BaselineForm]) -> bool:
    """Whether something was; if not, the form that was filled in says why."""
    by = acting_user(request)
    filled: Any = next((one for one in [form, *baselines] if one.is_bound), None)
    if filled is None:  # a baseline
        messages.error(request, _gone(request.POST))
        return False
    if not filled.is_valid():
        return False
    try:
        if filled is form:
            services.enter(form.instance, by=by)
        else:
            services.enter_baseline(filled.instance, by=by)
    except UserError as error:
        filled.add_error(None, str(error))
        return False
    return True
