"""Long jobs that organisers start: one of a kind at a time, in their order, and none is lost.

The row says what is asked for and how far it is. A Celery job claims it, so that a second one has
nothing to do, gives a sign of life now and then, and ends it. One that gives none any more is ended
by the timetable.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

from webapp.core.text import one_line

logger = logging.getLogger(__name__)
SILENT = timedelta(seconds=45)
STOPPED = "The site's jobs were stopped meanwhile: start it again."


class State(models.TextChoices):
    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


PENDING = (State.WAITING, State.RUNNING)


class Job(models.Model):
    """`heard_at` is when the job that does it last gave a sign of life."""

    title = models.CharField(max_length=80)
    organiser = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING, db_index=True)
    reason = models.CharField(max_length=300, blank=True)
    doing = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    heard_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.title

    @property
    def is_over(self) -> bool:
        return self.state not in PENDING

    @property
    def num_before(self) -> int:
        """How many of its kind are done before it begins."""
        rows = type(self)._default_manager
        return rows.filter(state__in=PENDING, pk__lt=self.pk).count()


AnyJob = TypeVar("AnyJob", bound=Job)


def lock(job: AnyJob) -> AnyJob | None:
    """As the database has it now, and nobody else changes it in this transaction."""
    return type(job)._default_manager.select_for_update().filter(pk=job.pk).first()


@transaction.atomic
def claim(kind: type[AnyJob], now: datetime) -> AnyJob | None:
    """The next one to do, which is running from now on; None while another runs or none waits."""
    rows = kind._default_manager.select_for_update()
    pending = list(rows.filter(state__in=PENDING).order_by("pk"))
    if not pending or any(one.state == State.RUNNING for one in pending):
        return None
    job = pending[0]
    job.state, job.started_at, job.heard_at = State.RUNNING, now, now
    job.save(update_fields=["state", "started_at", "heard_at"])
    return job


def note(job: Job, **known: Any) -> bool:
    """Keeps what is known of it. Whether it is still wanted."""
    running = type(job)._default_manager.filter(pk=job.pk, state=State.RUNNING)
    return running.update(heard_at=timezone.now(), **known) == 1


def end(job: Job, state: State, reason: str = "") -> None:
    """Of a locked one."""
    job.state, job.reason, job.doing = state, one_line(reason, 300), ""
    job.ended_at = timezone.now()
    job.save(update_fields=["state", "reason", "doing", "ended_at"])


@transaction.atomic
def fail(job: Job, reason: str) -> None:
    """Does nothing to one that was cancelled meanwhile."""
    locked = lock(job)
    if locked is not None and locked.state == State.RUNNING:
        end(locked, State.FAILED, reason)


def silent(kind: type[AnyJob], now: datetime) -> list[AnyJob]:
    """Those whose job died: nobody does them any more."""
    rows = kind._default_manager
    return list(rows.filter(state=State.RUNNING, heard_at__lt=now - SILENT))


def give_up_silent(kind: type[AnyJob], now: datetime) -> None:
    for job in silent(kind, now):
        fail(job, STOPPED)


def call_when_kept(task: str) -> None:
    """Has a worker begin the Celery task of this dotted name once this transaction is kept; where
    the broker does not answer, the timetable does it later."""
    transaction.on_commit(partial(_call, task), robust=True)


def _call(task: str) -> None:
    try:
        import_string(task).delay()
    except OperationalError as error:
        logger.warning("no worker is called: the message broker does not answer (%s)", error)
