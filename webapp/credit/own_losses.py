"""How well the shared model does on the texts of those volunteers who let the site know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from django.db.models import OuterRef, Subquery

from webapp.collaborations.models import Collaboration
from webapp.credit.models import Receipt
from webapp.devices.models import Device


@dataclass(frozen=True)
class Spread:
    """Losses of `num_devices`, each on its owner's held-out texts; `deviation` is their standard
    deviation, 0 where the model serves all of them alike."""

    num_devices: int
    best: float
    mean: float
    worst: float
    deviation: float


def spread(losses: Sequence[float]) -> Spread | None:
    """None while nobody tells."""
    if not losses:
        return None
    return Spread(len(losses), min(losses), fmean(losses), max(losses), pstdev(losses))


def spread_of(collaboration: Collaboration) -> Spread | None:
    """Of the newest losses; None while nobody tells."""
    told = Receipt.objects.filter(
        session__device=OuterRef("pk"),
        session__collaboration=collaboration,
        own_loss__isnull=False,
    ).order_by("-at", "-seq")
    devices = (
        Device.objects.filter(sessions__collaboration=collaboration)
        .annotate(own_loss=Subquery(told.values("own_loss")[:1]))
        .exclude(own_loss=None)
        .values_list("pk", "own_loss")
        .distinct()
    )
    return spread([loss for _, loss in devices])
