"""Books receipts: each `(session, seq)` once, with its counters in the same transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from trainer.wire import Receipt as WireReceipt
from trainer.wire import Report, Role
from webapp.collaborations.models import Collaboration
from webapp.credit.models import HourlyCredit, Receipt
from webapp.devices.models import Device, Session


@dataclass
class Sums:
    samples: int = 0
    tokens: int = 0
    rounds: int = 0
    compute_s: float = 0.0
    weight: float = 0.0

    def add(self, receipt: Receipt) -> None:
        self.samples += receipt.samples
        self.tokens += receipt.tokens
        self.rounds += 1
        self.compute_s += receipt.compute_s
        self.weight += receipt.weight or 0.0


def book_receipt(session: Session, report: Report) -> bool:
    """True when this report was new and is booked now; False when it was booked before."""
    return book_receipts([(session.pk, report)]) == 1


@transaction.atomic
def book_receipts(reports: Sequence[tuple[UUID, Report]]) -> int:
    """Books the receipts among `reports`; returns how many were new.

    Reports of other kinds, of unknown sessions and of coordinators are passed over. The rows of
    the sessions are locked in one order, so two writers never book the same report twice.
    """
    wanted = {
        (session_id, report.seq): report.body
        for session_id, report in reports
        if isinstance(report.body, WireReceipt)
    }
    sessions = {
        session.pk: session
        for session in Session.objects.select_for_update(of=("self",))
        .select_related("device")
        .filter(pk__in={session_id for session_id, _ in wanted})
        .exclude(role=Role.COORDINATOR)
        .order_by("pk")
    }
    for key in _booked(wanted):
        del wanted[key]
    now = timezone.now()  # the site's clock: a device's own may be hours off
    new = [
        _row(sessions[session_id], seq, body, now)
        for (session_id, seq), body in wanted.items()
        if session_id in sessions
    ]
    Receipt.objects.bulk_create(new, batch_size=2000)
    _count(new, sessions, now)
    return len(new)


def _booked(wanted: Iterable[tuple[UUID, int]]) -> list[tuple[UUID, int]]:
    """Which of these keys have a receipt already."""
    keys = set(wanted)
    if not keys:
        return []
    seqs = [seq for _, seq in keys]
    rows = Receipt.objects.filter(
        session__in={session_id for session_id, _ in keys},
        seq__range=(min(seqs), max(seqs)),
    ).values_list("session_id", "seq")
    return [key for key in rows.iterator(chunk_size=2000) if key in keys]


def _row(session: Session, seq: int, body: WireReceipt, now: datetime) -> Receipt:
    return Receipt(
        session=session,
        seq=seq,
        round=body.round,
        samples=body.samples,
        tokens=body.tokens,
        accepted=body.accepted,
        reason=body.reason,
        compute_s=body.compute_s,
        bytes_in=body.verdict.bytes_in,
        bytes_out=body.verdict.bytes_out,
        weight=body.weight,
        own_loss=body.own_loss,
        steps=body.steps,
        norm=body.norm,
        drift=body.drift,
        at=now,
    )


def _count(new: list[Receipt], sessions: dict[UUID, Session], now: datetime) -> None:
    """Adds the new receipts to their hour's counters and to their sessions' computing time."""
    credit: dict[tuple[Any, ...], Sums] = defaultdict(Sums)
    worked: dict[UUID, float] = defaultdict(float)
    for receipt in new:
        session = sessions[receipt.session_id]
        worked[session.pk] += receipt.compute_s
        if receipt.accepted and session.device is not None:
            device = session.device
            credit[session.collaboration_id, device.owner_id, device.pk].add(receipt)
    _add_to_hour(credit, now.replace(minute=0, second=0, microsecond=0))
    _add_to_sessions([sessions[key] for key in worked], worked)


def book_evaluation(
    device: Device, collaboration: Collaboration, *, tokens: int, compute_s: float, now: datetime
) -> None:
    """Of a device that measured a checkpoint with so many target tokens. Call it in the transaction
    that notes what was measured, which counts once."""
    row, _ = HourlyCredit.objects.get_or_create(
        collaboration=collaboration,
        device=device,
        hour=now.replace(minute=0, second=0, microsecond=0),
        defaults={"user": device.owner},
    )
    HourlyCredit.objects.filter(pk=row.pk).update(
        evaluated=F("evaluated") + tokens, compute_s=F("compute_s") + compute_s
    )


def _add_to_hour(credit: dict[tuple[Any, ...], Sums], hour: datetime) -> None:
    """Makes missing rows, locks all, and writes the sums in one statement.

    `bulk_update` with F() builds one CASE per row and column and took twenty times as long.
    """
    keys = ("collaboration", "device", "hour")
    HourlyCredit.objects.bulk_create(
        [
            HourlyCredit(collaboration_id=collaboration, user_id=user, device_id=device, hour=hour)
            for collaboration, user, device in credit
        ],
        ignore_conflicts=True,
    )
    rows = list(
        HourlyCredit.objects.select_for_update()
        .filter(hour=hour, device__in={device for _, _, device in credit})
        .order_by("pk")
    )
    rows = [row for row in rows if (row.collaboration_id, row.user_id, row.device_id) in credit]
    for row in rows:
        sums = credit[row.collaboration_id, row.user_id, row.device_id]
        row.samples += sums.samples
        row.tokens += sums.tokens
        row.rounds += sums.rounds
        row.compute_s += sums.compute_s
        row.weight += sums.weight
    fields = ["samples", "tokens", "rounds", "compute_s", "weight"]
    HourlyCredit.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=keys, update_fields=fields
    )


def _add_to_sessions(sessions: list[Session], worked: dict[UUID, float]) -> None:
    """The rows exist and are locked, so every one of these inserts becomes an update."""
    for session in sessions:
        session.compute_s += worked[session.pk]
    Session.objects.bulk_create(
        sessions, update_conflicts=True, unique_fields=["id"], update_fields=["compute_s"]
    )
