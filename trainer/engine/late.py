"""What a device had learned in a round that ended without it: dropped, or handed in later for less.

Only where the recipe allows it, and for strategies that take changes as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from trainer.engine.tally import Tally
from trainer.strategies.base import Offer
from trainer.swarm import clock
from trainer.swarm.weights import discount

if TYPE_CHECKING:
    from trainer.engine.loop import RoundLoop


class Late(NamedTuple):
    offer: Offer
    tally: Tally
    round: int


def set_aside(loop: RoundLoop, reason: str) -> Late | None:
    """Ends this peer's part in its round; None when what it has is dropped, for that reason."""
    learner = loop.learner
    may_wait = loop.recipe.participation.late_rounds and not loop.tally.late
    offer = learner.offer() if may_wait and loop.tally.tokens else None
    if offer is None:
        loop.release(reason)
        return None
    late = Late(offer, loop.start_round(), learner.round)
    learner.begin()
    return late


def hand_in(loop: RoundLoop, late: Late | None, reason: str) -> None:
    """Makes it this round's result, or drops it: it is too old, or the round did not come."""
    if late is None:
        return
    rounds = loop.learner.round - late.round
    if not 0 < rounds <= loop.recipe.participation.late_rounds:
        loop.outbox.report(late.tally.released(late.round, reason))
        return
    loop.learner.late = replace(late.offer, weight=late.offer.weight * discount(rounds))
    loop.tally = replace(late.tally, late=rounds, started=clock.now(), arrived_s=0.0)
