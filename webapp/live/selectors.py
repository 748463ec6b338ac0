"""Reads for pages and the API: the snapshot, the curves, the event list."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, Max, Min, QuerySet

from webapp.collaborations.models import Collaboration
from webapp.live.board import Board
from webapp.live.facts import APPLIED, read_facts
from webapp.live.hub import hub
from webapp.live.models import Event, Minute, RoundRecord
from webapp.live.public import public_event, public_round
from webapp.live.reduce import reduced
from webapp.live.rooms import FRESH_S, compose

ROUND_METRICS = {"loss": "loss", "held_out": "held_out_loss"}
MINUTE_METRICS = {"samples_per_s": "samples_per_s", "peers": "peers"}
METRICS = (*ROUND_METRICS, *MINUTE_METRICS)
MOST_POINTS = 5000
FEWEST_POINTS = 4
NEWEST_EVENTS = 50


def snapshot(collaboration: Collaboration) -> dict[str, Any]:
    """The document that viewers get first (`live.hub` describes it). Public.

    It is the state after this process's last frame, where one was made lately; but what an act
    has just changed is as in `collaboration`, because a frame's facts may be seconds old.
    """
    now = time.time()
    room = hub.rooms.get(collaboration.slug)
    if room is not None and room.shown and now - room.at <= FRESH_S:
        fresh = {"state": collaboration.state, "state_reason": collaboration.state_reason}
        shown = {**room.shown, **fresh}
        return {"kind": "snapshot", "seq": room.seq, "at": round(room.at, 3), **shown}
    board = Board(dict(room.board.standings)) if room else Board()
    state = compose(board, read_facts(collaboration), now)
    return {"kind": "snapshot", "seq": room.seq if room else 0, "at": round(now, 3), **state}


def history(
    collaboration: Collaboration,
    *,
    metric: str = "loss",
    max_points: int = 1000,
    start: float | None = None,
    end: float | None = None,
) -> dict[str, Any]:
    """One curve, reduced: {"metric", "x": "round" or "time", "points": [[x, y], …], "num_points"}.

    x is a round, or site time in seconds for `samples_per_s` and `peers`; `start` and `end` bound
    it, both included, for a look at a part in full detail. `num_points` is how many there are in
    the range before reduction. Raises ValueError with words for an unknown metric or a bad range.
    """
    if metric not in METRICS:
        raise ValueError(f"metric {metric!r} is not one of {', '.join(METRICS)}")
    if not FEWEST_POINTS <= max_points <= MOST_POINTS:
        raise ValueError(f"max_points is {max_points}; it must be {FEWEST_POINTS} to {MOST_POINTS}")
    if start is not None and end is not None and start > end:
        raise ValueError(f"start {start} is after end {end}")
    by_round = metric in ROUND_METRICS
    rows = _round_rows(collaboration, metric) if by_round else _minute_rows(collaboration, metric)
    x = "round" if by_round else "at"
    rows = _within(rows, x, start, end)
    bounds = rows.aggregate(first=Min(x), last=Max(x), count=Count("pk"))
    points: list[Any] = []
    if bounds["count"]:
        low, high = _number(bounds["first"]), _number(bounds["last"])
        every = _points(rows, x, (ROUND_METRICS | MINUTE_METRICS)[metric])
        enough = bounds["count"] <= max_points
        points = [
            list(point)
            for point in (
                every if enough else reduced(every, start=low, end=high, max_points=max_points)
            )
        ]
    return {
        "metric": metric,
        "x": "round" if by_round else "time",
        "points": points,
        "num_points": bounds["count"],
    }


def _round_rows(collaboration: Collaboration, metric: str) -> QuerySet[Any]:
    """Rounds that were not applied have no place in a curve of the model's loss."""
    known = {f"{ROUND_METRICS[metric]}__isnull": False}
    return collaboration.rounds.filter(outcome__in=APPLIED, **known).order_by("round")


def _minute_rows(collaboration: Collaboration, metric: str) -> QuerySet[Any]:
    return Minute.objects.filter(collaboration=collaboration).order_by("at")


def _within(rows: QuerySet[Any], x: str, start: float | None, end: float | None) -> QuerySet[Any]:
    for bound, value in (("gte", start), ("lte", end)):
        if value is not None:
            rows = rows.filter(**{f"{x}__{bound}": _bound(x, value)})
    return rows


def _bound(x: str, value: float) -> Any:
    """Raises ValueError where the number is no time."""
    if x == "round":
        return value
    try:
        return datetime.fromtimestamp(value, tz=UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{value} is no time in seconds since 1970") from error


def _points(rows: QuerySet[Any], x: str, y: str) -> Iterator[tuple[float, float]]:
    for place, value in rows.values_list(x, y).iterator(chunk_size=5000):
        yield _number(place), value


def _number(place: Any) -> float:
    return place.timestamp() if isinstance(place, datetime) else place


def history_rows(collaboration: Collaboration) -> Iterator[dict[str, Any]]:
    """Every round that is kept, oldest first, for the CSV file; streams from the database."""
    for record in collaboration.rounds.order_by("round").iterator(chunk_size=2000):
        yield public_round(record)


def rounds(collaboration: Collaboration, newest: int = 50) -> list[dict[str, Any]]:
    """The newest rounds, oldest first, whatever their outcome."""
    records: list[RoundRecord] = list(collaboration.rounds.order_by("-round")[:newest])
    return [public_round(record) for record in reversed(records)]


def round_of(collaboration: Collaboration, number: int | None = None) -> RoundRecord | None:
    """Round `number`, or the newest, whatever its outcome."""
    found = collaboration.rounds.order_by("-round")
    return (found if number is None else found.filter(round=number)).first()


def neighbours(record: RoundRecord) -> tuple[int | None, int | None]:
    """The numbers of the rounds that are kept before and after it."""
    kept = RoundRecord.objects.filter(collaboration=record.collaboration_id)
    numbers = kept.values_list("round", flat=True)
    older = numbers.filter(round__lt=record.round).order_by("-round").first()
    return older, numbers.filter(round__gt=record.round).order_by("round").first()


def events(
    collaboration: Collaboration, viewer: Any = None, newest: int = NEWEST_EVENTS
) -> list[dict[str, Any]]:
    """The newest events, newest first, named as `viewer` may see them."""
    found = Event.objects.filter(collaboration=collaboration).select_related("device__owner")
    return [public_event(event, viewer=viewer) for event in found[:newest]]
