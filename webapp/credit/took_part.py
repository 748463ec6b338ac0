"""Who took part in a round, by the receipt of each: its device's own figures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from webapp.accounts.selectors import public_name
from webapp.collaborations.models import Collaboration
from webapp.credit.models import Receipt
from webapp.credit.own_losses import Spread, spread

EARLY = timedelta(seconds=10)  # a receipt may come before the word of the coordinator


@dataclass(frozen=True)
class Part:
    """One device's, named as the viewer may know its owner. `weight` is its part of all."""

    name: str
    samples: int
    steps: int | None
    weight: float | None
    norm: float | None
    drift: float | None


@dataclass(frozen=True)
class Participation:
    """The heaviest part first. `mean_norm` and `mean_drift` are weighted as the average is, over
    those who tell; `own_losses` are of those owners who agreed that organisers see them.
    """

    parts: list[Part]
    mean_norm: float | None
    mean_drift: float | None
    own_losses: Spread | None


def took_part(
    collaboration: Collaboration, number: int, ended_at: datetime, viewer: Any = None
) -> Participation:
    """In round `number`, as far as their receipts have come. Refused offers are not in it.

    A round that was done anew, from an older checkpoint, has receipts of both times: those from
    before it `ended_at` do not count, and of one device the newest does.
    """
    told = (
        Receipt.objects.filter(
            round=number,
            session__collaboration=collaboration,
            accepted=True,
            at__gte=ended_at - EARLY,
        )
        .select_related("session__device__owner")
        .order_by("at", "seq")
    )
    newest = {receipt.session.device_id or receipt.session_id: receipt for receipt in told}
    receipts = sorted(newest.values(), key=lambda one: (-(one.weight or 0), -one.samples, one.pk))
    return Participation(
        parts=[_part(receipt, viewer) for receipt in receipts],
        mean_norm=_mean(receipts, "norm"),
        mean_drift=_mean(receipts, "drift"),
        own_losses=spread([one.own_loss for one in receipts if one.own_loss is not None]),
    )


def _part(receipt: Receipt, viewer: Any) -> Part:
    device = receipt.session.device
    return Part(
        name=public_name(device.owner if device else None, viewer=viewer),
        samples=receipt.samples,
        steps=receipt.steps,
        weight=receipt.weight,
        norm=receipt.norm,
        drift=receipt.drift,
    )


def _mean(receipts: list[Receipt], name: str) -> float | None:
    known = [
        (value, one.weight)
        for one in receipts
        if one.weight and (value := getattr(one, name)) is not None
    ]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None
