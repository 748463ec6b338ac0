"""How a round ends: offer, verdict, and then the next round, or back to the anchor."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from trainer.strategies.base import Offer
from trainer.swarm.progress import Stage, View, counts
from trainer.swarm.tracker import expected_group
from trainer.swarm.verdict import Note, Verdict, deviates
from trainer.wire import Activity, Outcome

if TYPE_CHECKING:
    from trainer.engine.loop import RoundLoop

MOST_ATTEMPTS = 4
REASONS = {
    Activity.MATCHMAKING: "waiting for the others to end the round",
    Activity.AVERAGING: "averaging with the others",
}
log = logging.getLogger(__name__)


class Ending:
    def __init__(self, loop: RoundLoop) -> None:
        self._loop = loop

    def run(self, view: View) -> None:
        """One attempt to end the round with those who are in it."""
        loop = self._loop
        offer = loop.learner.offer()
        if offer is None:
            loop.release("what it had learned was not finite")
            return
        group = expected_group(view, loop.learner.round)
        if group:
            loop.enter(Stage.READY)
            self._average(offer, self._note(offer), group)
        else:
            note = self._note(offer)
            notes = {loop.peer.peer_id: note}
            alone = Verdict(note.round, Outcome.ALONE, notes, reason="training alone")
            self._apply(alone, offer.tensors)

    def _note(self, offer: Offer) -> Note:
        loop = self._loop
        return Note(
            round=loop.learner.round,
            role=loop.role,
            samples=loop.tally.samples,
            tokens=loop.tally.tokens,
            loss_sum=loop.tally.loss_sum,
            fingerprint=loop.learner.fingerprint(),
            extra=offer.note,
        )

    def _average(self, offer: Offer, note: Note, group: set[str]) -> None:
        """Applies a clean verdict of a group that speaks for the swarm; else goes back."""
        loop = self._loop
        me, known = loop.peer.peer_id, loop.peer.coordinators
        verdict, mean = loop.averager.run_round(
            offer.tensors, offer.weight, note, len(group) + 1, self._watch
        )
        if verdict.outcome is Outcome.PARTIAL:
            loop.tally.lost += verdict.lost
            self._repeat(verdict.reason, verdict.lost)
        elif verdict.outcome is Outcome.FAILED:
            self._repeat(verdict.reason)
            loop.tracker.forget_the_silent(group)
        elif not counts(verdict.notes, group | {me}, known):
            self._repeat("the group did not speak for the swarm")
            loop.tracker.forget_the_silent(group - set(verdict.notes))
        elif not verdict.tokens:
            self._repeat("nobody had anything to average")
        elif deviates(note, verdict.notes, known):
            loop.release("this peer's parameters had drifted from the swarm's")
            loop.catch_up.run(verdict.round + 1)
        else:
            loop.tracker.forget(group - set(verdict.notes))
            loop.tracker.assume(set(verdict.notes) - {me}, verdict.round + 1)
            self._apply(verdict, mean)

    def _watch(self, activity: Activity) -> bool:
        loop = self._loop
        loop.show(activity, REASONS[activity])
        if activity is Activity.MATCHMAKING and loop.catch_up.needed(loop.tracker.view()):
            return False
        return not loop.must_leave()

    def _repeat(self, reason: str, lost: Sequence[str] = ()) -> None:
        """Nothing is applied; the same round again with who is left, or from its beginning."""
        loop = self._loop
        log.info("Round %d is repeated: %s", loop.learner.round, reason)
        loop.show(Activity.WAITING, f"{reason}; the round is repeated")
        loop.enter(Stage.TRAINING)
        if not lost:
            return
        loop.tracker.forget(lost)
        loop.tally.attempts += 1
        if loop.tally.attempts >= MOST_ATTEMPTS:
            loop.release(reason)
        loop.tracker.refreshed(3)  # some may have got all parts and gone on

    def _apply(self, verdict: Verdict, mean: Sequence[Tensor]) -> None:
        loop = self._loop
        loop.learner.accept(mean, [note.extra for note in verdict.offered])
        done = loop.start_round()
        loop.stage = Stage.TRAINING
        loop.tracker.publish()
        loop.peer.share_state(loop.learner.round)
        loop.ended(verdict.summary(done.lost), done)
