"""Starts, cancels and ends experiments. One runs at a time; the others wait in their order."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from trainer import catalogue
from trainer.experiment import Experiment
from webapp.accounts.models import User
from webapp.audit.services import record
from webapp.collaborations import access
from webapp.core import jobs
from webapp.core.errors import UserError
from webapp.core.text import one_line
from webapp.lab.models import State, Trial

WORK = "webapp.lab.tasks.work"  # which calls this module
MOST_WAITING = 20
ROUND_S = 0.065  # of computing for each volunteer's round, measured on one core of a server


@transaction.atomic
def start(experiment: Experiment, *, title: str, by: User) -> Trial:
    """Lets a job do it. Raises UserError: kind `forbidden`, or none when too many wait or it
    would take too long.

    Raises ValueError for a strategy or parameter that does not exist.
    """
    access.require(by, "create")
    for choice in experiment.strategies:
        catalogue.create("strategies", choice)
    if Trial.objects.filter(state=State.WAITING).count() >= MOST_WAITING:
        raise UserError(
            f"{MOST_WAITING} experiments are waiting already.", "Cancel one, or come back later."
        )
    if (minutes := minutes_of(experiment)) > settings.LAB_MINUTES:
        raise UserError(
            f"It would compute for about {minutes} minutes, and an experiment is ended after "
            f"{settings.LAB_MINUTES}.",
            "Choose fewer volunteers, rounds, strategies or seeds.",
        )
    trial = Trial.objects.create(
        title=one_line(title, 80) or experiment.split_in_words()[:80],
        organiser=by,
        plan=experiment.model_dump(mode="json"),
    )
    detail = {"strategies": ", ".join(choice.name for choice in experiment.strategies)}
    record(actor=by, action="experiment.started", subject=trial, detail=detail)
    jobs.call_when_kept(WORK)
    return trial


def minutes_of(experiment: Experiment) -> int:
    """About how long it computes where nothing else does."""
    rounds = experiment.num_runs * experiment.rounds * experiment.volunteers
    return max(1, round(ROUND_S * rounds / 60))


@transaction.atomic
def cancel(trial: Trial, *, by: User) -> None:
    """The job that does it notices within seconds. Raises UserError when it is over."""
    access.require(by, "create")
    locked = Trial.objects.select_for_update().get(pk=trial.pk)
    if locked.is_over:
        raise UserError(f"{locked.title} is {locked.state} already.")
    jobs.end(locked, State.CANCELLED, "by an organiser")
    record(actor=by, action="experiment.cancelled", subject=locked)


@transaction.atomic
def delete(trial: Trial, *, by: User) -> None:
    """With its result. Raises UserError while it waits or runs."""
    access.require(by, "create")
    locked = Trial.objects.select_for_update().get(pk=trial.pk)
    if not locked.is_over:
        raise UserError(f"{locked.title} is {locked.state}.", "Cancel it first.")
    record(actor=by, action="experiment.deleted", subject=locked)
    locked.delete()


def claim(now: datetime) -> Trial | None:
    return jobs.claim(Trial, now)


def note_progress(trial: Trial, result: dict[str, Any] | None) -> bool:
    """Whether it is still wanted. `result` is as far as it is known."""
    if result is None:
        return jobs.note(trial)
    return jobs.note(trial, doing=result["doing"][:200], rounds_done=result["rounds_done"])


@transaction.atomic
def finish(trial: Trial, result: dict[str, Any] | None, failure: str = "") -> None:
    """Keeps what came of it, also of one that was cancelled meanwhile."""
    locked = jobs.lock(trial)
    if locked is None:
        return
    locked.result = result
    locked.rounds_done = result["rounds_done"] if result else 0
    locked.save(update_fields=["result", "rounds_done"])
    if locked.state == State.RUNNING:
        jobs.end(locked, State.FAILED if failure else State.FINISHED, failure)


def give_up_silent(now: datetime) -> None:
    """Ends those whose job died: nobody does them any more."""
    for trial in jobs.silent(Trial, now):
        finish(trial, trial.result, jobs.STOPPED)
