"""The job that keeps the registry in order."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from webapp.artifacts.services import delete_unnamed
from webapp.collaborations.models import Collaboration
from webapp.registry.services import retire


@shared_task
def tend_checkpoints() -> None:
    """Retires what no rule keeps, and deletes the files that nothing names any more."""
    for collaboration in Collaboration.objects.all():
        retire(collaboration, timezone.now())
    delete_unnamed()
