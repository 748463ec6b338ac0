"""How a round ends: offer, verdict, and then the next round, or back to the anchor."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from trainer.device import memory
from trainer.engine.history import History, burst, exploded
from trainer.strategies.base import Member, Offer, norm_of
from trainer.swarm.judgement import agreed
from trainer.swarm.progress import Stage, View, counts, expected_group
from trainer.swarm.verdict import Note, Verdict, deviates, short
from trainer.wire import Activity, Outcome

if TYPE_CHECKING:
    from trainer.engine.loop import RoundLoop

MOST_ATTEMPTS = 4
REASONS = {
    Activity.MATCHMAKING: "waiting for the others to end the round",
    Activity.AVERAGING: "",
}
log = logging.getLogger(__name__)


class Ending:
    def __init__(self, loop: RoundLoop) -> None:
        self._loop = loop
        self._history = History()

    def run(self, view: View) -> None:
        """One attempt to end the round with those who are in it.

        The memory of passes and that of averages are not needed at the same time.
        """
        memory.give_back()
        self._attempt(view)
        memory.give_back()

    def _attempt(self, view: View) -> None:
        loop = self._loop
        loop.tally.arrive(loop.timing.round_age(view))
        if loop.own_check is not None:
            loop.own_check.training_ends()
        offer = loop.learner.offer()
        if offer is None:
            loop.release("what it had learned was not finite")
            return
        group = expected_group(view, loop.learner.round)
        note = self._note(offer, group)
        own = norm_of(loop.learner.adapted.of_strategy(offer.tensors))  # a mean's is told likewise
        loop.tally.offered(note, own, loop.learner.drift())
        if group:
            loop.enter(Stage.READY)
            self._average(offer, note, group)
        else:
            notes = {loop.peer.peer_id: note}
            weights = {loop.peer.peer_id: note.weight}
            alone = Verdict(
                note.round, Outcome.ALONE, notes, weights=weights, reason="training alone"
            )
            self._apply(alone, offer.tensors)

    def _note(self, offer: Offer, group: set[str]) -> Note:
        loop, history = self._loop, self._history
        number = loop.learner.round
        return Note(
            round=number,
            role=loop.role,
            samples=loop.tally.samples,
            tokens=loop.tally.tokens,
            loss_sum=loop.tally.loss_sum,
            steps=loop.learner.context.steps,
            late=loop.tally.late,
            weight=offer.weight,
            norm=norm_of(offer.tensors),
            fingerprint=loop.learner.fingerprint(),
            arrived_s=loop.tally.arrived_s,
            extra=offer.note,
            seen=loop.tracker.seen(number),
            barred=history.barred(number),
            usual_norm=history.usual_norm(),
            usual_loss=history.usual_loss(),
            good_round=history.good_round,
            chosen=loop.turn.chosen,
            brought=loop.turn.brought(group),
        )

    def _average(self, offer: Offer, note: Note, group: set[str]) -> None:
        """Applies a clean verdict of a group that speaks for the swarm; else goes back."""
        loop = self._loop
        me, known = loop.peer.peer_id, loop.peer.coordinators
        verdict, mean = loop.averager.run_round(offer.tensors, note, group, self._watch)
        if not verdict.applies:
            self._fail(verdict, group)
        elif not counts(verdict.notes, group | {me}, known):
            self._repeat("the group did not speak for the swarm")
            loop.tracker.forget_the_silent(group - set(verdict.notes))
        elif not verdict.tokens:
            self._history.add(verdict)  # norms that stay what they are become usual
            self._void(replace(verdict, reason="nobody had anything to average"))
        elif deviates(note, verdict.notes, known):
            loop.release("this peer's parameters had drifted from the swarm's")
            loop.catch_up.run(verdict.round + 1)
        else:
            loop.tracker.forget(group - set(verdict.notes))
            loop.tracker.assume(set(verdict.notes) - {me}, verdict.round + 1)
            self._apply(verdict, mean)

    def _fail(self, verdict: Verdict, group: set[str]) -> None:
        loop = self._loop
        for name in verdict.struck:
            self._history.bar(short(name), verdict.refused[name], verdict.round)
        if verdict.outcome is Outcome.PARTIAL:
            loop.tally.lost += verdict.lost
            self._repeat(verdict.reason, verdict.lost)
        elif verdict.refused:
            self._void(verdict)
        else:
            self._repeat(verdict.reason)
            loop.tracker.forget_the_silent(group)

    def _void(self, verdict: Verdict) -> None:
        """The round is repeated without those who were refused; these begin it anew."""
        loop = self._loop
        why = verdict.refused.get(loop.peer.peer_id)
        if why is not None:
            loop.release(f"this device's offer {why}")
        elif verdict.refused:
            loop.voided(replace(verdict, outcome=Outcome.FAILED).summary())
        self._repeat(verdict.reason)

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
        """Takes the step, or goes back; which of the two, all members read from the notes."""
        loop, history, known = self._loop, self._history, self._loop.peer.coordinators
        usual = agreed(verdict.notes, known, lambda note: note.usual_loss)
        good = agreed(verdict.notes, known, lambda note: note.good_round)
        history.add(verdict)
        bad = exploded(verdict.loss, usual)
        if bad and good is not None:
            self._undo(verdict, int(good), bad)
            return
        before = verdict.notes[loop.peer.peer_id].fingerprint[-1]
        history.keep(loop.learner)
        length = norm_of(loop.learner.adapted.of_strategy(mean))
        loop.learner.accept(mean, members_of(verdict, loop.peer.peer_id))
        verdict = replace(
            verdict,
            mean_norm=length if math.isfinite(length) else None,
            told=loop.learner.strategy.told,
        )
        if bad := burst(norm_of(loop.learner.anchor), before):
            self._undo(verdict, verdict.round, bad)
        else:
            self._go_on(verdict)

    def _undo(self, verdict: Verdict, good_round: int, why: str) -> None:
        """Into the next round with the parameters, moments and strategy of a good one."""
        loop, history = self._loop, self._history
        reason = f"{why}; back to the parameters of round {good_round}"
        log.warning("Round %d: %s", verdict.round, reason)
        if history.good_round != good_round:  # joined since then: the others have it
            loop.release(reason)
            loop.catch_up.run(verdict.round + 1)
            return
        loop.learner.load_state(verdict.round + 1, history.good_state)
        self._go_on(replace(verdict, outcome=Outcome.UNDONE, reason=reason, told=""))

    def _go_on(self, verdict: Verdict) -> None:
        loop = self._loop
        loop.timing.deadline.learn(note.arrived_s for note in verdict.notes.values() if note.tokens)
        asked = loop.turn.decide(verdict)
        done = loop.start_round()
        me = loop.peer.peer_id
        done.share, done.weight = verdict.shares.get(me), verdict.say_of(me)
        loop.share = done.share
        loop.stage = Stage.TRAINING
        loop.tracker.publish()
        loop.peer.share_state(loop.learner.round)
        if loop.own_check is not None:
            done.own_loss = loop.own_check.round_ended(verdict.round)
        loop.ended(verdict.summary(done.lost, asked, loop.learner.adapted.missed), done)


def members_of(verdict: Verdict, own: str) -> list[Member]:
    """In the order of the notes, which is the same for all; `own` is this peer's name."""
    left_out = {*verdict.lost, *verdict.refused}
    return [
        Member(
            weight=0.0 if name in left_out else verdict.weights.get(name, 0.0),
            steps=note.steps,
            note=note.extra,
            lost=name in verdict.lost,
            is_own=name == own,
        )
        for name, note in verdict.notes.items()
    ]
