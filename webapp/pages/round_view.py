"""One round in words and figures, for its own page and for the live page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from trainer.wire import Outcome
from webapp.collaborations.models import Collaboration
from webapp.collaborations.rules import rule_of
from webapp.core.templatetags.ui import duration, number, say
from webapp.credit.took_part import took_part
from webapp.live.models import RoundRecord
from webapp.live.selectors import neighbours

MOST_SHOWN = 100


def round_view(
    request: HttpRequest, collaboration: Collaboration, record: RoundRecord | None
) -> dict[str, Any]:
    """Context of `templates/parts/round.html`. Only organisers see how fair the model is, because
    that is what volunteers who tell their losses agreed to.
    """
    recipe = collaboration.recipe
    common = {"collaboration": collaboration, "rule": rule_of(recipe.strategy.name)}
    if record is None:
        return common
    took = took_part(collaboration, record.round, record.at, viewer=request.user)
    older, newer = neighbours(record)
    return common | {
        "record": record,
        "words": in_words(record),
        "took": took,
        "shown": took.parts[:MOST_SHOWN],
        "num_more": max(len(took.parts) - MOST_SHOWN, 0),
        "num_awaited": max(record.members - len(took.parts), 0),
        "agreement": agreement(record.mean_norm, took.mean_norm),
        "tells_fairness": recipe.is_private and request.user.is_staff,
        "older": older,
        "newer": newer,
    }


def in_words(record: RoundRecord) -> str:
    """As `roundWords` of static/js/rows.js says it."""
    is_alone = record.outcome == Outcome.CLEAN and record.members <= 1
    outcome = Outcome.ALONE if is_alone else record.outcome
    return say(
        "last_round_alone" if outcome == Outcome.ALONE else "last_round",
        round=number(record.round),
        outcome=say(f"outcome_{outcome}"),
        peers=_peers(record),
        samples=number(record.samples),
        span=duration(record.duration_s),
    )


def _peers(record: RoundRecord) -> str:
    n = number(record.members)
    if record.asked is not None:
        return say("chosen_peers", n=n, asked=number(record.asked))
    return say("one_peer" if record.members == 1 else "so_many_peers", n=n)


def agreement(of_mean: float | None, of_each: float | None) -> float | None:
    """Length of the average in mean lengths of the offers: 1 where all pulled the same way, and
    less the more they cancel out. None where somebody does not tell, or one peer was alone.
    """
    return min(of_mean / of_each, 1.0) if of_mean is not None and of_each else None
