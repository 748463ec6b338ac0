"""A Celery worker that does organisers' jobs, until it is stopped itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from celery.signals import worker_shutting_down
from django.utils import timezone

from webapp.core.jobs import AnyJob

_stopping = threading.Event()


@worker_shutting_down.connect
def _stop(**about: Any) -> None:
    _stopping.set()


def work_off(
    claim: Callable[[datetime], AnyJob | None], do: Callable[[AnyJob, threading.Event], None]
) -> None:
    """Does all that wait, one after another; a second one of these has nothing to do."""
    while not _stopping.is_set() and (job := claim(timezone.now())):
        do(job, _stopping)
