"""How far the texts of a collaboration are read, and when a device last asked for a part."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Min, Q

from webapp.collaborations.models import Collaboration
from webapp.shards.models import Pool


@dataclass(frozen=True)
class Reading:
    """Text `number`, from 1, was read `passes` times, and once more in `num_read` of its parts."""

    number: int
    passes: int
    num_read: int
    num_leased: int
    num_shards: int


def how_far(collaboration: Collaboration, *, now: datetime) -> list[Reading]:
    """Of the present recipe; empty before the first device asked."""
    pools = Pool.objects.filter(revision=collaboration.revision).annotate(
        passes=Min("shards__passes"),
        num_leased=Count("shards", filter=Q(shards__expires_at__gt=now)),
    )
    return [
        Reading(
            number=pool.text + 1,
            passes=pool.passes,
            num_read=pool.shards.filter(passes__gt=pool.passes).count(),
            num_leased=pool.num_leased,
            num_shards=pool.num_shards,
        )
        for pool in pools
    ]


def heard_at(collaboration: Collaboration) -> datetime | None:
    """Of any text of any of its recipes; None before the first device asked."""
    pools = Pool.objects.filter(revision__collaboration=collaboration)
    found: datetime | None = pools.aggregate(newest=Max("heard_at"))["newest"]
    return found
