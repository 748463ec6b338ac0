"""Reads what credit adds up to. Only hourly counters are read, never receipts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from webapp.accounts.models import User
from webapp.accounts.selectors import public_name
from webapp.collaborations.models import Collaboration
from webapp.credit.models import HourlyCredit

PERIODS = {"24h": timedelta(hours=24), "7d": timedelta(days=7), "all": None}
MEASURES = ("samples", "rounds")
PAGE_SIZE = 25
SUMS = {
    "samples": Sum("samples", default=0),
    "tokens": Sum("tokens", default=0),
    "rounds": Sum("rounds", default=0),
    "evaluated": Sum("evaluated", default=0),
    "compute_s": Sum("compute_s", default=0.0),
}


@dataclass(frozen=True)
class Totals:
    samples: int
    tokens: int
    rounds: int
    evaluated: int
    compute_s: float


@dataclass(frozen=True)
class Place(Totals):
    rank: int
    name: str
    is_me: bool


@dataclass(frozen=True)
class Leaderboard:
    """`unlisted`: what people who are not listed, or have left, did; it is part of `total`.

    It is the same for everybody, also for a viewer who sees a row that others do not.
    """

    rows: list[Place]
    page: int
    num_pages: int
    num_rows: int
    total: Totals
    unlisted: Totals


@dataclass(frozen=True)
class Day:
    day: date
    samples: int
    tokens: int


def leaderboard(
    period: str = "24h",
    collaboration: Collaboration | None = None,
    viewer: Any = None,
    page: int | str = 1,
    by: str = "samples",
) -> Leaderboard:
    """`period` is a key of PERIODS and `by`, what ranks, one of MEASURES; ValueError otherwise. A
    page out of range gives the nearest.

    Unlisted people have no row of their own but for themselves and for organisers.
    """
    if by not in MEASURES:
        raise ValueError(f"by {by!r} is not one of {', '.join(MEASURES)}")
    credit = _since(period)
    if collaboration is not None:
        credit = credit.filter(collaboration=collaboration)
    listed = _listed_for(viewer)
    places = (
        credit.filter(listed)
        .values("user")
        .annotate(**SUMS)
        .filter(Q(samples__gt=0) | Q(evaluated__gt=0))
        .order_by(f"-{by}", "-samples", "user")
    )
    shown = Paginator(places, PAGE_SIZE).get_page(page)
    users = User.objects.in_bulk([row["user"] for row in shown])
    return Leaderboard(
        rows=[
            _place(rank, row, users[row["user"]], viewer)
            for rank, row in enumerate(shown, start=shown.start_index())
        ],
        page=shown.number,
        num_pages=shown.paginator.num_pages,
        num_rows=shown.paginator.count,
        total=_totals(credit),
        unlisted=_totals(credit.exclude(_listed_for(None))),
    )


def _since(period: str) -> QuerySet[HourlyCredit]:
    if period not in PERIODS:
        raise ValueError(f"period {period!r} is not one of {', '.join(PERIODS)}")
    length = PERIODS[period]
    credit = HourlyCredit.objects.all()
    return credit if length is None else credit.filter(hour__gt=timezone.now() - length)


def _listed_for(viewer: Any) -> Q:
    if viewer is None or not viewer.is_authenticated:
        return Q(user__isnull=False, user__is_listed=True)
    if viewer.is_organiser:
        return Q(user__isnull=False)
    return Q(user__isnull=False) & (Q(user__is_listed=True) | Q(user=viewer.pk))


def _place(rank: int, row: Mapping[str, Any], user: User, viewer: Any) -> Place:
    is_me = viewer is not None and viewer.is_authenticated and viewer.pk == user.pk
    sums = {key: row[key] for key in SUMS}
    return Place(rank=rank, name=public_name(user, viewer=viewer), is_me=is_me, **sums)


def _totals(credit: QuerySet[HourlyCredit]) -> Totals:
    return Totals(**credit.aggregate(**SUMS))


def my_totals(user: User) -> Totals:
    return _totals(HourlyCredit.objects.filter(user=user))


def collaboration_totals(collaboration: Collaboration) -> Totals:
    return _totals(HourlyCredit.objects.filter(collaboration=collaboration))


def contributors(collaboration: Collaboration) -> tuple[list[str], int]:
    """Public names of those who agreed to be named with the model, most samples first, and how
    many others have credit here. Of accounts that were deleted nothing is known.
    """
    places = (
        HourlyCredit.objects.filter(collaboration=collaboration, user__isnull=False)
        .filter(Q(samples__gt=0) | Q(evaluated__gt=0))
        .values("user", "user__name", "user__is_named", "user__is_listed")
        .annotate(samples=SUMS["samples"])
        .order_by("-samples", "user")
    )
    named = [
        row["user__name"] for row in places if row["user__is_named"] and row["user__is_listed"]
    ]
    return named, len(places) - len(named)


def credit_per_day(user: User, days: int = 30) -> list[Day]:
    """One entry for each of the last `days` days (UTC), oldest first; days without work are 0."""
    today = timezone.now().date()
    first = today - timedelta(days=days - 1)
    rows = (
        HourlyCredit.objects.filter(user=user, hour__date__gte=first)
        .annotate(day=TruncDate("hour"))
        .values("day")
        .annotate(samples=SUMS["samples"], tokens=SUMS["tokens"])
    )
    found = {row["day"]: row for row in rows}
    empty = {"samples": 0, "tokens": 0}
    every_day = (first + timedelta(days=offset) for offset in range(days))
    return [
        Day(day, found.get(day, empty)["samples"], found.get(day, empty)["tokens"])
        for day in every_day
    ]
