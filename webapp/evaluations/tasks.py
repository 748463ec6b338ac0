"""Jobs that evaluate checkpoints: each in a process of its own, which is watched."""

from __future__ import annotations

import threading
from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down
from django.utils import timezone

from webapp.evaluations import services
from webapp.evaluations.program import do

_stopping = threading.Event()


@worker_shutting_down.connect
def _stop(**about: Any) -> None:
    _stopping.set()


@shared_task
def work() -> None:
    """Does all that wait, one after another; a second one of these has nothing to do."""
    while not _stopping.is_set() and (evaluation := services.claim(timezone.now())):
        do(evaluation, _stopping)


@shared_task
def tend_evaluations() -> None:
    """Enters what is due, catches what a restart interrupted, and begins what waits."""
    services.enter_due()
    services.give_up_silent(timezone.now())
    work()
