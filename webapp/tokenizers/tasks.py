"""Jobs that make tokenizers: each in a process of its own, which is watched."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from webapp.core.worker import work_off
from webapp.tokenizers import services
from webapp.tokenizers.program import do


@shared_task
def work() -> None:
    work_off(services.claim, do)


@shared_task
def tend_tokenizers() -> None:
    """Catches what a restart interrupted, and begins what waits."""
    services.give_up_silent(timezone.now())
    work()
