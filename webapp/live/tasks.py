"""Timed jobs of the live area."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from trainer.wire import Role
from webapp.collaborations.models import Collaboration
from webapp.devices import services as devices
from webapp.live import thinning
from webapp.live.models import Event
from webapp.live.services import add_event, tell


@shared_task
def close_dead_sessions() -> None:
    """Finds those whose web process died before it could say that they were lost."""
    for session in devices.close_dead_sessions(now=timezone.now()):
        if session.role != Role.COORDINATOR:
            text = f"lost: {session.end_reason}"
            tell(add_event(session.collaboration, Event.What.LOST, text, session.device))


@shared_task
def thin_metrics() -> None:
    now = timezone.now()
    thinning.thin_minutes(now)
    thinning.forget_events(now)
    for collaboration in Collaboration.objects.all():
        thinning.thin_rounds(collaboration)
