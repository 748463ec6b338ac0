"""The jobs that keep the registry in order and make models of checkpoints."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from webapp.artifacts.services import delete_unnamed
from webapp.collaborations.models import Collaboration
from webapp.core.worker import work_off
from webapp.registry import packing, pushing
from webapp.registry.services import retire


@shared_task
def tend_checkpoints() -> None:
    """Retires what no rule keeps, and deletes the files that nothing names any more."""
    for collaboration in Collaboration.objects.all():
        retire(collaboration, timezone.now())
    delete_unnamed()


@shared_task
def pack() -> None:
    work_off(packing.claim, packing.do)


@shared_task
def push() -> None:
    work_off(pushing.claim, pushing.do)


@shared_task
def tend_models() -> None:
    """Enters what is due, catches what a restart interrupted, and begins what waits."""
    packing.enter_due(timezone.now())
    packing.give_up_silent(timezone.now())
    pushing.give_up_silent(timezone.now())
    pack()
    push()
