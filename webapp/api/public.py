"""What anybody may read. The viewer is always the public: no answer depends on a cookie."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Annotated, Any, Literal

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Path, Query, Router, Schema
from ninja.errors import HttpError
from pydantic import Field

from trainer.grant import Clock
from trainer.wire import Slug
from webapp.api.gates import PerMinute
from webapp.api.problems import problems
from webapp.api.tables import csv_text
from webapp.artifacts.selectors import checkpoints as kept_checkpoints
from webapp.collaborations import access
from webapp.collaborations.selectors import collaboration_by_slug, visible_collaborations
from webapp.credit import selectors as credit
from webapp.live import selectors as live

router = Router(tags=["public"], throttle=PerMinute("public", 240))
Metric = Literal["loss", "held_out", "samples_per_s", "peers"]
Bound = Annotated[float | None, Query(ge=0, le=10**12, allow_inf_nan=False)]
CSV_ANSWER = {
    "responses": {
        200: {"description": "OK", "content": {"text/csv": {"schema": {"type": "string"}}}}
    }
}
ROUND_COLUMNS = (
    "round",
    "at",
    "outcome",
    "loss",
    "held_out_loss",
    "members",
    "samples",
    "tokens",
    "duration_s",
    "num_lost",
    "asked",
    "reason",
)


class CollaborationLine(Schema):
    slug: str
    title: str
    summary: str
    state: Literal["open", "running", "paused", "finished", "failed"]
    state_reason: str
    round: int = Field(description="The last round that is done.")
    text_credit: str = Field(description="Whose text is trained on, and its licence.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class CheckpointLine(Schema):
    """`loss` is that of the round before it, as the peers measured it while they trained."""

    round: int
    loss: float | None
    size_bytes: int
    sha256: str
    created_at: datetime
    url: str


class Totals(Schema):
    """`evaluated`: target tokens that checkpoints were measured with."""

    samples: int
    tokens: int
    rounds: int
    evaluated: int
    compute_s: float


class Place(Totals):
    rank: int
    name: str


class Leaderboard(Schema):
    """People who are not listed have no row; what they did is in `unlisted` and in `total`."""

    rows: list[Place]
    page: int
    num_pages: int
    total: Totals
    unlisted: Totals


@router.get("/clock", response={200: Clock} | problems())
def clock(request: HttpRequest) -> Clock:
    """The site's time in seconds since 1970."""
    return Clock(now=time.time())


@router.get("/collaborations", response={200: list[CollaborationLine]} | problems())
def collaborations(request: HttpRequest) -> Any:
    return visible_collaborations()[:200]


@router.get("/collaborations/{slug}", response={200: dict[str, Any]} | problems(404))
def collaboration(request: HttpRequest, slug: Path[Slug]) -> dict[str, Any]:
    """The live state: the same snapshot that the page starts from."""
    return live.snapshot(collaboration_by_slug(slug))


@router.get("/collaborations/{slug}/history", response={200: dict[str, Any]} | problems(404))
def history(
    request: HttpRequest,
    slug: Path[Slug],
    metric: Metric = "loss",
    max_points: Annotated[int, Query(ge=live.FEWEST_POINTS, le=live.MOST_POINTS)] = 1000,
    start: Bound = None,
    end: Bound = None,
) -> dict[str, Any]:
    """A curve reduced to `max_points`; minimum, maximum, first and last of each bucket are kept.

    `start` and `end` bound a part: rounds, or seconds since 1970 where x is time.
    """
    chosen = collaboration_by_slug(slug)
    try:
        return live.history(chosen, metric=metric, max_points=max_points, start=start, end=end)
    except ValueError as error:
        raise HttpError(422, str(error)) from error


@router.get("/collaborations/{slug}/history.csv", response=problems(404), openapi_extra=CSV_ANSWER)
def history_csv(request: HttpRequest, slug: Path[Slug]) -> HttpResponse:
    """Every round, one a line, nothing reduced."""
    rows = live.history_rows(collaboration_by_slug(slug))
    text = csv_text(ROUND_COLUMNS, ([row[name] for name in ROUND_COLUMNS] for row in rows))
    answer = HttpResponse(text, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}.csv"'
    return answer


@router.get(
    "/collaborations/{slug}/checkpoints", response={200: list[CheckpointLine]} | problems(403, 404)
)
def checkpoints(request: HttpRequest, slug: Path[Slug]) -> list[CheckpointLine]:
    """Those that are kept, newest first; 403 where they are not for everybody."""
    chosen = collaboration_by_slug(slug)
    access.require(AnonymousUser(), "download", chosen)
    return [
        CheckpointLine(
            round=one.round,
            loss=one.loss,
            size_bytes=one.file.size_bytes,
            sha256=one.file.sha256,
            created_at=one.created_at,
            url=reverse("artifact", args=[one.file.sha256, one.file.filename]),
        )
        for one in kept_checkpoints(chosen)[:200]
    ]


@router.get("/collaborations/{slug}/events", response={200: list[dict[str, Any]]} | problems(404))
def events(request: HttpRequest, slug: Path[Slug]) -> list[dict[str, Any]]:
    """The newest events first."""
    return live.events(collaboration_by_slug(slug), viewer=None)


@router.get("/leaderboard", response={200: Leaderboard} | problems(404))
def leaderboard(
    request: HttpRequest,
    period: Literal["24h", "7d", "all"] = "24h",
    collaboration: Slug | None = None,
    page: Annotated[int, Query(ge=1, le=10**6)] = 1,
    by: Literal["samples", "rounds"] = "samples",
) -> Any:
    """Samples, tokens and rounds credited, for one collaboration or for all.

    `by` rounds, a slow machine or a small text counts as much as a fast one that was there as long.
    """
    chosen = collaboration_by_slug(collaboration) if collaboration else None
    return credit.leaderboard(period, chosen, page=page, by=by)
