"""Forgets old detail, never what a curve needs."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Avg
from django.db.models.functions import TruncHour

from webapp.collaborations.models import Collaboration
from webapp.live.facts import APPLIED
from webapp.live.models import Event, Minute, RoundRecord
from webapp.live.reduce import reduced

MINUTES_KEPT = timedelta(days=7)
EVENTS_KEPT = timedelta(days=30)
MOST_ROUNDS = 20_000
NEWEST_ROUNDS_KEPT = 2_000  # never thinned: finish rules and pages read them
DELETE_AT_ONCE = 500


def thin_minutes(now: datetime) -> int:
    """Rows older than a week become one per hour with their mean; returns how many went."""
    limit = (now - MINUTES_KEPT).replace(minute=0, second=0, microsecond=0)
    old = Minute.objects.filter(at__lt=limit)
    hours = (
        old.annotate(hour=TruncHour("at"))
        .values("collaboration", "hour")
        .annotate(mean_peers=Avg("peers"), mean_samples_per_s=Avg("samples_per_s"))
        .order_by()
    )
    with transaction.atomic():
        means = [
            Minute(
                collaboration_id=row["collaboration"],
                at=row["hour"],
                peers=row["mean_peers"],
                samples_per_s=row["mean_samples_per_s"],
            )
            for row in hours
        ]
        gone = old.delete()[0]
        Minute.objects.bulk_create(means, batch_size=1000)
    return gone - len(means)


def thin_rounds(collaboration: Collaboration) -> int:
    """Of more than MOST_ROUNDS, keeps each bucket's first, last, lowest and highest loss.

    Kept besides: every round with a held-out loss and the newest ones. Returns how many went.
    """
    records = RoundRecord.objects.filter(collaboration=collaboration).order_by("round")
    if records.count() <= MOST_ROUNDS:
        return 0
    newest = records.reverse()[NEWEST_ROUNDS_KEPT].round
    old = records.filter(round__lte=newest, held_out_loss__isnull=True)
    first = old.first()
    if first is None:
        return 0
    applied = old.filter(outcome__in=APPLIED, loss__isnull=False).values_list("round", "loss")
    keep = {
        point[0]
        for point in reduced(
            applied.iterator(), start=first.round, end=newest, max_points=MOST_ROUNDS // 2
        )
    }
    doomed = [pk for pk, number in old.values_list("pk", "round").iterator() if number not in keep]
    for start in range(0, len(doomed), DELETE_AT_ONCE):
        RoundRecord.objects.filter(pk__in=doomed[start : start + DELETE_AT_ONCE]).delete()
    return len(doomed)


def forget_events(now: datetime) -> int:
    return Event.objects.filter(at__lt=now - EVENTS_KEPT).delete()[0]
