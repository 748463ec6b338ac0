"""Timed jobs about collaborations."""

from __future__ import annotations

from celery import shared_task

from webapp.collaborations import finish_rules
from webapp.collaborations.models import Collaboration, State


@shared_task
def check_finish_rules() -> None:
    """Catches what the check after each round missed because the site was down."""
    for collaboration in Collaboration.objects.filter(state=State.RUNNING):
        finish_rules.check(collaboration)
