"""Stores one batch of reports in one transaction: each `(session, seq)` once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from trainer.wire import (
    Bye,
    CheckpointWritten,
    HeldOut,
    Receipt,
    Report,
    Role,
    RoundSeen,
    SwarmOpened,
)
from webapp.artifacts.services import register_checkpoint
from webapp.artifacts.storage import checkpoint_folder
from webapp.collaborations.models import Collaboration
from webapp.collaborations.services import note_round, note_swarm
from webapp.core.errors import UserError
from webapp.credit.services import book_receipts
from webapp.devices.models import Session
from webapp.live.facts import APPLIED
from webapp.live.models import Event, RoundRecord
from webapp.live.public import public_event, public_round
from webapp.live.records import Witnessed, kind_of, record_rounds, site_time, story
from webapp.live.services import Told, add_event, leave

Item = tuple[UUID, Report]


@dataclass
class News:
    rounds: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Stored:
    """`seqs`: up to which number each session is stored now; a deleted session is missing.

    `news` by slug is what viewers should be told; `moved` are collaborations with new rounds.
    """

    seqs: dict[UUID, int] = field(default_factory=dict)
    news: dict[str, News] = field(default_factory=lambda: defaultdict(News))
    moved: list[Collaboration] = field(default_factory=list)


def store(items: Sequence[Item]) -> Stored:
    """Stores what follows each session's last stored number without a gap, in that order.

    Raises django.db.Error; then nothing of the batch is stored and it may be tried again.
    """
    stored = Stored()
    refused = _take_checkpoints(items)
    with transaction.atomic():
        sessions = _locked({session_id for session_id, _ in items})
        fresh = _in_order(items, sessions)
        Session.objects.bulk_update({session for session, _ in fresh}, ["stored_seq"])
        book_receipts([(session.pk, report) for session, report in fresh])
        for collaboration, reports in _by_collaboration(fresh).items():
            _store_rounds(collaboration, reports, stored)
            for session, report in reports:
                if told := _store_other(session, report, refused):
                    stored.news[collaboration.slug].events.append(told)
        stored.seqs = {pk: session.stored_seq for pk, session in sessions.items()}
    return stored


def _locked(ids: Iterable[UUID]) -> dict[UUID, Session]:
    rows = (
        Session.objects.select_for_update(of=("self",))
        .select_related("collaboration", "device__owner")
        .filter(pk__in=list(ids))
        .order_by("pk")
    )
    return {session.pk: session for session in rows}


def _in_order(items: Sequence[Item], sessions: dict[UUID, Session]) -> list[tuple[Session, Report]]:
    """The reports that are next in their sessions, whose `stored_seq` this moves on."""
    fresh = []
    for session_id, report in sorted(items, key=lambda item: item[1].seq):
        session = sessions.get(session_id)
        if session is not None and report.seq == session.stored_seq + 1:
            session.stored_seq = report.seq
            fresh.append((session, report))
    return fresh


def _by_collaboration(
    fresh: list[tuple[Session, Report]],
) -> dict[Collaboration, list[tuple[Session, Report]]]:
    grouped: dict[Collaboration, list[tuple[Session, Report]]] = defaultdict(list)
    for session, report in fresh:
        grouped[session.collaboration].append((session, report))
    return grouped


def _store_rounds(
    collaboration: Collaboration, reports: list[tuple[Session, Report]], stored: Stored
) -> None:
    now = timezone.now()
    changed = record_rounds(
        collaboration, [seen for one in reports if (seen := _witnessed(*one, now))]
    )
    measured = _keep_held_out(collaboration, reports)
    news = stored.news[collaboration.slug]
    news.rounds += [public_round(record) for record, _ in changed] + measured
    events = Event.objects.bulk_create(
        Event(collaboration=collaboration, at=now, what=kind_of(record), text=story(record))
        for record, is_news in changed
        if is_news
    )
    news.events += [public_event(event) for event in events]
    done = [record.round for record, _ in changed if record.outcome in APPLIED]
    if done:
        note_round(collaboration, max(done))
    if done or measured:
        stored.moved.append(collaboration)


def _witnessed(session: Session, report: Report, now: datetime) -> Witnessed | None:
    body = report.body
    by_coordinator = session.role == Role.COORDINATOR
    if not (isinstance(body, Receipt) or (isinstance(body, RoundSeen) and by_coordinator)):
        return None
    at = site_time(report.at, earliest=session.started_at, now=now)
    return Witnessed(verdict=body.verdict, at=at, by_coordinator=by_coordinator)


def _keep_held_out(
    collaboration: Collaboration, reports: list[tuple[Session, Report]]
) -> list[dict[str, Any]]:
    """Writes the coordinator's held-out losses into their rounds' records; returns those rounds."""
    losses = {
        report.body.round: report.body.loss
        for session, report in reports
        if isinstance(report.body, HeldOut) and session.role == Role.COORDINATOR
    }
    records = list(RoundRecord.objects.filter(collaboration=collaboration, round__in=losses))
    for record in records:
        record.held_out_loss = losses[record.round]
    RoundRecord.objects.bulk_update(records, ["held_out_loss"])
    return [public_round(record) for record in records]


def _store_other(
    session: Session, report: Report, refused: dict[tuple[UUID, int], str]
) -> Told | None:
    collaboration, body = session.collaboration, report.body
    if isinstance(body, Bye):
        return leave(session, body.cause, body.reason)
    if session.role != Role.COORDINATOR:
        return None
    if isinstance(body, SwarmOpened):
        note_swarm(collaboration, addresses=body.addresses)
    if isinstance(body, CheckpointWritten):
        if why := refused.get((session.pk, report.seq)):
            return public_event(add_event(collaboration, Event.What.WARNING, why))
        text = f"Checkpoint of round {body.round} is ready."
        return public_event(add_event(collaboration, Event.What.CHECKPOINT, text))
    return None


def _take_checkpoints(items: Sequence[Item]) -> dict[tuple[UUID, int], str]:
    """Takes announced files over, each in its own transaction; those refused, with the reason.

    Before the batch, because hashing a large file must not hold the lock of the whole batch. A
    file taken over twice is one artifact, so a batch that is tried again does no harm.
    """
    refused = {}
    for session_id, report in items:
        if not isinstance(report.body, CheckpointWritten):
            continue
        session = (
            Session.objects.select_related("collaboration")
            .filter(pk=session_id, role=Role.COORDINATOR, stored_seq__lt=report.seq)
            .first()
        )
        if session is None:
            continue
        try:
            folder = checkpoint_folder(session.collaboration.slug)
            register_checkpoint(session.collaboration, report.body, folder)
        except (UserError, OSError) as error:
            refused[session_id, report.seq] = str(error)
    return refused
