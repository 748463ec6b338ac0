"""Writes of the live area: sessions that come and go, events, minutes."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from trainer.wire import Hello, LeaveCause, Role
from webapp.collaborations.models import Collaboration
from webapp.core.push import push
from webapp.core.text import one_line
from webapp.devices.models import Device, Session
from webapp.devices.services import close_session, open_session
from webapp.live.models import Event, Minute
from webapp.live.public import public_event

HUB_GROUP = "hub"


def add_event(
    collaboration: Collaboration, what: Event.What, text: str, device: Device | None = None
) -> Event:
    return Event.objects.create(
        collaboration=collaboration,
        at=timezone.now(),
        what=what,
        text=one_line(text, 300),
        device=device,
    )


def tell(event: Event) -> None:
    """Shows an event to all viewers once it is committed; for code that has no hub at hand."""
    slug = event.collaboration.slug
    push(HUB_GROUP, {"type": "hub.news", "slug": slug, "events": [public_event(event)]})


Told = dict[str, Any]  # an event as viewers get it, made here because making it may read rows


@transaction.atomic
def join(device: Device, collaboration: Collaboration, hello: Hello) -> tuple[Session, Told | None]:
    """Opens the session that an agent names; a reconnect is no event. Raises UserError."""
    known = Session.objects.filter(pk=hello.session).first()
    was_open = known is not None and known.ended_at is None
    session = open_session(
        device, collaboration=collaboration, session_id=UUID(hello.session), role=hello.role
    )
    if was_open or session.ended_at is not None or hello.role == Role.COORDINATOR:
        return session, None
    text = "came back" if known else "joined"
    return session, public_event(add_event(collaboration, Event.What.JOINED, text, device))


@transaction.atomic
def leave(session: Session, cause: LeaveCause, reason: str = "") -> Told | None:
    """Ends a session; its event, or None where it had ended before or is a coordinator's."""
    if not close_session(session, cause=cause, reason=reason) or session.role == Role.COORDINATOR:
        return None
    what = Event.What.LOST if cause == LeaveCause.LOST else Event.What.LEFT
    text = f"{what}: {reason}" if reason else str(what)
    return public_event(add_event(session.collaboration, what, text, session.device))


@transaction.atomic
def lose(session_id: UUID, *, cut_at: datetime, reason: str) -> Told | None:
    """Marks a session lost, unless it gave a sign of life after its connection was cut."""
    session = (
        Session.objects.select_related("collaboration", "device__owner")
        .filter(pk=session_id, ended_at__isnull=True, last_seen_at__lte=cut_at)
        .first()
    )
    return leave(session, LeaveCause.LOST, reason) if session else None


def keep_minute(slug: str, at: datetime, peers: float, samples_per_s: float) -> None:
    """One row per collaboration and minute; the last web process to tell wins."""
    collaboration = Collaboration.objects.filter(slug=slug).first()
    if collaboration is not None:
        Minute.objects.update_or_create(
            collaboration=collaboration,
            at=at,
            defaults={"peers": peers, "samples_per_s": samples_per_s},
        )
