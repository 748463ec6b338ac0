"""Jobs that evaluate checkpoints: each in a process of its own, which is watched."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from webapp.core.worker import work_off
from webapp.evaluations import services
from webapp.evaluations.program import do


@shared_task
def work() -> None:
    work_off(services.claim, do)


@shared_task
def tend_evaluations() -> None:
    """Enters what is due, catches what a restart interrupted, and begins what waits."""
    now = timezone.now()
    services.enter_due(now)
    services.give_up_silent(now)
    work()
