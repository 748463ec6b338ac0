"""Enters tasks and baselines; starts, repeats, cancels and ends evaluations. One runs at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from webapp.accounts.models import User
from webapp.artifacts.models import Checkpoint
from webapp.artifacts.selectors import checkpoints, newest_checkpoint
from webapp.audit.services import record
from webapp.collaborations import access
from webapp.core import jobs
from webapp.core.errors import UserError
from webapp.core.jobs import State
from webapp.evaluations.models import Baseline, Evaluation, Start, Task

WORK = "webapp.evaluations.tasks.work"  # which calls this module
LATELY = timedelta(minutes=5)  # the timetable looks each minute


@transaction.atomic
def enter(task: Task, *, by: User) -> None:
    """Keeps a new task. Raises UserError, also when there is one of its name."""
    access.require(by, "create")
    if Task.objects.filter(collaboration=task.collaboration, title=task.title).exists():
        raise UserError(f"There is a task called {task.title} already: choose another name.")
    task.save()
    record(actor=by, action="evaluation.entered", subject=task)


@transaction.atomic
def drop(task: Task, *, by: User) -> None:
    """With all that came of it; a program that runs for it is ended within seconds."""
    access.require(by, "create")
    record(actor=by, action="evaluation.dropped", subject=task)
    task.delete()


@transaction.atomic
def enter_baseline(baseline: Baseline, *, by: User) -> None:
    access.require(by, "create")
    Baseline.objects.filter(task=baseline.task, name=baseline.name).delete()
    baseline.save()
    detail = {"score": baseline.score, "source": baseline.source}
    record(actor=by, action="evaluation.baseline", subject=baseline, detail=detail)


@transaction.atomic
def drop_baseline(baseline: Baseline, *, by: User) -> None:
    access.require(by, "create")
    record(actor=by, action="evaluation.baseline_dropped", subject=baseline)
    baseline.delete()


@transaction.atomic
def ask(task: Task, *, by: User) -> Evaluation:
    """Of the newest checkpoint, or once more where that came to nothing. Raises UserError."""
    access.require(by, "create")
    checkpoint = newest_checkpoint(task.collaboration)
    if checkpoint is None:
        raise UserError("There is no checkpoint yet.", "Ask again once one is written.")
    evaluation, is_new = _of(task, checkpoint, by)
    if not is_new:
        _repeat(evaluation)
    record(actor=by, action="evaluation.asked", subject=task, detail={"round": evaluation.round})
    return evaluation


@transaction.atomic
def again(evaluation: Evaluation, *, by: User) -> None:
    """Raises UserError when it is not over, has its result, or its checkpoint is gone."""
    access.require(by, "create")
    _repeat(evaluation)
    record(actor=by, action="evaluation.repeated", subject=evaluation)


def _repeat(evaluation: Evaluation) -> None:
    locked = jobs.lock(evaluation)
    if locked is None or locked.state not in (State.FAILED, State.CANCELLED):
        raise UserError(f"Round {evaluation.round} is {evaluation.state} already with this task.")
    if locked.checkpoint is None or locked.checkpoint.artifact_id is None:
        raise UserError(f"The checkpoint of round {locked.round} is not kept any more.")
    locked.state, locked.reason, locked.share, locked.ended_at = State.WAITING, "", 0.0, None
    locked.save(update_fields=["state", "reason", "share", "ended_at"])
    jobs.call_when_kept(WORK)


def _of(task: Task, checkpoint: Checkpoint, by: User | None) -> tuple[Evaluation, bool]:
    """That of this checkpoint, and whether it is new: then it waits for a job."""
    evaluation, is_new = Evaluation.objects.get_or_create(
        task=task,
        sha256=checkpoint.file.sha256,
        defaults={
            "title": f"{task.title}, round {checkpoint.round}"[:80],
            "checkpoint": checkpoint,
            "round": checkpoint.round,
            "organiser": by,
        },
    )
    if is_new:
        jobs.call_when_kept(WORK)
    return evaluation, is_new


@transaction.atomic
def enter_due(now: datetime) -> None:
    """Checkpoints that are the first in so many rounds as their tasks say: the newest one, and
    those that came shortly before it. What is older was missed while the site was down.
    """
    for task in Task.objects.filter(every__gt=0).select_related("collaboration"):
        kept = checkpoints(task.collaboration)
        lately = kept.filter(created_at__gt=now - LATELY)
        for checkpoint in sorted({*lately, *kept[:1]}, key=lambda one: one.round):
            first = checkpoint.round - checkpoint.round % task.every
            if not task.evaluations.filter(round__gte=first).exists():
                _of(task, checkpoint, None)


@transaction.atomic
def cancel(evaluation: Evaluation, *, by: User) -> None:
    """The job that does it notices within seconds. Raises UserError when it is over."""
    access.require(by, "create")
    locked = jobs.lock(evaluation)
    if locked is None or locked.is_over:
        raise UserError(f"{evaluation.title} is {evaluation.state} already.")
    jobs.end(locked, State.CANCELLED, "by an organiser")
    record(actor=by, action="evaluation.cancelled", subject=locked)


def claim(now: datetime) -> Evaluation | None:
    return jobs.claim(Evaluation, now)


def note_progress(evaluation: Evaluation, report: dict[str, Any] | None) -> bool:
    """Whether it is still wanted. `report` is the program's own, if there is one."""
    if report is None:
        return jobs.note(evaluation)
    keep_starts(evaluation, report)
    return jobs.note(evaluation, doing=report["doing"][:200], share=report["share"])


@transaction.atomic
def keep_starts(evaluation: Evaluation, report: dict[str, Any]) -> None:
    """Those of the report that it has not yet; in place of all, where they are of other data."""
    locked = jobs.lock(evaluation)
    if locked is None or locked.state != State.RUNNING:
        return
    if locked.basis != report["basis"]:
        locked.starts.all().delete()
        locked.basis = report["basis"]
        locked.save(update_fields=["basis"])
    rows = (
        Start(evaluation=locked, number=number, scores=scores)
        for number, scores in report["starts"].items()
    )
    Start.objects.bulk_create(rows, ignore_conflicts=True)


@transaction.atomic
def finish(evaluation: Evaluation, result: dict[str, Any]) -> None:
    """Does nothing to one that was cancelled meanwhile, or finished by another."""
    locked = jobs.lock(evaluation)
    if locked is not None and locked.state == State.RUNNING:
        locked.result, locked.share = result, 1.0
        locked.save(update_fields=["result", "share"])
        jobs.end(locked, State.FINISHED)


def give_up_silent(now: datetime) -> None:
    """Ends those whose job died: nobody does them any more."""
    jobs.give_up_silent(Evaluation, now)
