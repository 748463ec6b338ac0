"""Which checkpoints of a collaboration are kept, and why. The others are retired by a job."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from itertools import pairwise

from django.db.models import Q

from webapp.artifacts.models import Checkpoint
from webapp.artifacts.selectors import checkpoints
from webapp.collaborations.models import Collaboration
from webapp.core.jobs import PENDING, State
from webapp.evaluations.models import Evaluation
from webapp.live.models import RoundRecord
from webapp.registry.models import Packing, Push

# A device that was told to load one, or measures parts of it, has so much time to fetch it after
# the next one is there.
LOADING = timedelta(minutes=15)
NEWEST, LAST, PINNED = "newest", "one of the last", "pinned"
BEST, EVALUATED, LOADED = "best held-out loss", "evaluated", "devices may be loading it"
NEEDED = "a job needs it"
REGULAR = "one in every {n} rounds"


def held_out_losses(rows: list[Checkpoint]) -> dict[int, float]:
    """{key of a checkpoint of one collaboration: its held-out loss}, where that was measured.

    The coordinator measures what a round led to and reports it under that round, so a checkpoint
    that says "begin with round n" is of round n - 1.
    """
    if not rows:
        return {}
    wanted = {row.round - 1 for row in rows}
    records = RoundRecord.objects.filter(
        collaboration=rows[0].collaboration_id, round__in=wanted, held_out_loss__isnull=False
    )
    losses = {one.round: one.held_out_loss or 0.0 for one in records}
    return {row.pk: losses[row.round - 1] for row in rows if row.round - 1 in losses}


def why_kept(collaboration: Collaboration, now: datetime) -> dict[int, str]:
    """{key of a checkpoint that is kept: why, in words}. Those that are not in it may go."""
    rows = list(checkpoints(collaboration))  # newest first
    reasons: dict[int, list[str]] = {row.pk: [] for row in rows}
    for row in rows[: collaboration.keep_last]:
        reasons[row.pk].append(LAST)
    for row in rows[:1]:
        reasons[row.pk] = [NEWEST]
    for newer, row in pairwise(rows):
        if now - newer.created_at < LOADING:
            reasons[row.pk].append(LOADED)
    for row in filter(lambda row: row.is_pinned, rows):
        reasons[row.pk].append(PINNED)
    losses = {key: x for key, x in held_out_losses(rows).items() if math.isfinite(x)}
    if losses:
        reasons[min(losses, key=lambda key: losses[key])].append(BEST)
    for key in _regular(rows, collaboration.keep_every):
        reasons[key].append(REGULAR.format(n=collaboration.keep_every))
    for words, keys in ((EVALUATED, _evaluated(collaboration)), (NEEDED, _needed(collaboration))):
        for key in keys & reasons.keys():
            reasons[key].append(words)
    return {key: ", ".join(words) for key, words in reasons.items() if words}


def _regular(rows: list[Checkpoint], every: int) -> list[int]:
    """The first one at or after each multiple of `every` rounds."""
    if not every:
        return []
    first = {row.round // every: row.pk for row in rows}  # the oldest of each comes last
    return list(first.values())


def _evaluated(collaboration: Collaboration) -> set[int]:
    """With a result, where the collaboration keeps these, and what an evaluation still needs."""
    wanted = Q(state__in=PENDING)
    if collaboration.keep_evaluated:
        wanted |= Q(state=State.FINISHED)
    found = Evaluation.objects.filter(wanted, task__collaboration=collaboration)
    return {key for key in found.values_list("checkpoint", flat=True) if key is not None}


def _needed(collaboration: Collaboration) -> set[int]:
    """Made into a model, or pushed, or waiting for that."""
    wanted = {"state__in": PENDING, "checkpoint__collaboration": collaboration}
    return {
        key
        for kind in (Packing, Push)
        for key in kind.objects.filter(**wanted).values_list("checkpoint", flat=True)
    }
