"""How well the shared model does on the texts of those volunteers who let the site know."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from webapp.collaborations.models import Collaboration
from webapp.credit.models import Receipt
from webapp.devices.models import Device


@dataclass(frozen=True)
class Spread:
    """Newest losses of `num_devices`, each on its owner's held-out texts."""

    num_devices: int
    best: float
    mean: float
    worst: float


def spread_of(collaboration: Collaboration) -> Spread | None:
    """None while nobody tells."""
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
    losses = [loss for _, loss in devices]
    if not losses:
        return None
    return Spread(len(losses), min(losses), sum(losses) / len(losses), max(losses))
