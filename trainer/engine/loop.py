"""The round loop: train until the round is due, offer, take the verdict, apply or go back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from trainer.engine.catchup import CatchUp
from trainer.engine.job import Outbox, Wishes
from trainer.engine.learner import Learner
from trainer.engine.status import Meter, Status
from trainer.families.base import Batch
from trainer.recipe import Recipe
from trainer.sources.base import SourceUnavailable
from trainer.swarm import clock
from trainer.swarm.peer import SwarmPeer
from trainer.swarm.progress import Stage, Standing, View, counts
from trainer.swarm.tracker import expected_group
from trainer.swarm.verdict import Note, Verdict, deviates
from trainer.wire import (
    Activity,
    Control,
    LeaveCause,
    Outcome,
    Receipt,
    Role,
    VerdictSummary,
    Wish,
)

MOST_ATTEMPTS = 4
NEARLY = 0.7  # of the target or the deadline: then a peer that is ready is followed
HAND_IN_S = 5.0  # a leaver waits so long for a round that is nearly over
GIVE_UP_S = 9.0  # a leaver cancels a round that takes longer
IDLE_S = 0.25
log = logging.getLogger(__name__)


class RoundLoop:
    """A training peer. The coordinator's loop (`coordinator.py`) overrides what differs."""

    def __init__(
        self,
        recipe: Recipe,
        role: Role,
        learner: Learner,
        peer: SwarmPeer,
        status: Status,
        outbox: Outbox,
        wishes: Wishes,
        batches: Callable[[], Iterator[Batch]],
    ) -> None:
        self.recipe, self.role = recipe, role
        self.learner, self.peer = learner, peer
        self.status, self.outbox, self.wishes = status, outbox, wishes
        self._new_batches, self._batches = batches, batches()
        self._meter = Meter()
        self.stage = Stage.AWAY
        self._leaving_since: float | None = None
        self.start_round()
        self.averager = peer.average(learner.offer_shapes(), learner.state)
        self.tracker = peer.track(self.standing)
        self.catch_up = CatchUp(self)
        status.watch_swarm(lambda: int(self.tracker.view().samples) + self.samples)

    # ------------------------------------------------------------ figures
    def start_round(self) -> None:
        self.samples = self.tokens = self.attempts = 0
        self.loss_sum = self.compute_s = 0.0
        self.lost: list[str] = []
        self.started = clock.now()

    def standing(self) -> Standing:
        """Our record; also called on other threads."""
        return Standing(
            round=self.learner.round,
            samples=self.samples,
            tokens=self.tokens,
            loss_sum=self.loss_sum,
            samples_per_s=self._meter.rate(),
            role=self.role,
            stage=self.stage,
            started=self.started,
            at=clock.now(),
        )

    def show(self, activity: Activity, reason: str = "") -> None:
        self.status.set(
            activity,
            reason,
            round=self.learner.round,
            samples=self.samples,
            tokens=self.tokens,
            loss_sum=self.loss_sum,
            samples_per_s=round(self._meter.rate(), 3),
        )

    def enter(self, stage: Stage) -> None:
        if stage is not self.stage:
            self.stage = stage
            self.tracker.publish()

    # ------------------------------------------------------------ the loop
    def run(self) -> LeaveCause:
        """Until the site or the volunteer wishes otherwise."""
        self.tracker.refreshed(5)
        while True:
            control = self.wish()
            self.peer.refresh_passport()
            view = self.tracker.view()
            if control.wish is Wish.PAUSE:
                self._pause(control)
            elif control.wish is Wish.STOP and not self._nearly_over(view):
                self.release("this device stopped before the round ended")
                return control.cause or LeaveCause.STOPPED
            elif self.catch_up.needed(view):
                self.catch_up.run(view.round or 0)
            elif self.due(view, control.wish is Wish.FINISH):
                self._average(view)
            elif control.wish is Wish.FINISH and self.may_finish(view):
                return control.cause or LeaveCause.FINISHED
            else:
                self.enter(Stage.TRAINING)
                self.work(view)

    def wish(self) -> Control:
        control = self.wishes.current()
        if control.wish is not Wish.STOP:
            self._leaving_since = None
        elif self._leaving_since is None:
            self._leaving_since = time.monotonic()
        return control

    def _leaving_for(self) -> float:
        return time.monotonic() - self._leaving_since if self._leaving_since is not None else 0.0

    def _nearly_over(self, view: View) -> bool:
        """Whether a leaver should still hand in what it has."""
        if not self.tokens or not view.present or self._leaving_for() > HAND_IN_S:
            return False
        rate = view.samples_per_s + self._meter.rate()
        missing = self.recipe.round.target_samples - view.samples - self.samples
        return missing <= rate * (HAND_IN_S - self._leaving_for())

    def _pause(self, control: Control) -> None:
        self.enter(Stage.AWAY)
        self.tracker.idle = True
        self.show(Activity.PAUSED, control.reason or "paused by the organiser")
        while self.wish().wish is Wish.PAUSE:
            self.peer.refresh_passport()
            time.sleep(IDLE_S)
        self.tracker.idle = False
        self._meter.restart()
        self.tracker.refreshed(5)

    def may_finish(self, view: View) -> bool:
        return not self.tokens

    # ------------------------------------------------------------ accumulate
    def work(self, view: View) -> None:
        """One micro-batch."""
        self.show(Activity.TRAINING, "" if view.peers else "training alone")
        began = time.monotonic()
        try:
            batch = next(self._batches)
        except SourceUnavailable as error:
            self._wait_for_text(str(error))
            return
        loss = self.learner.learn(batch)
        if loss is None:
            self.release("the loss of a micro-batch was not finite")
            return
        self.samples += batch.samples
        self.tokens += batch.tokens
        self.loss_sum += loss
        self.compute_s += time.monotonic() - began
        self._meter.add(batch.samples)

    def _wait_for_text(self, reason: str) -> None:
        log.warning("Text cannot be read: %s", reason)
        self.show(Activity.WAITING, f"{reason}; trying again in 10 s")
        until = time.monotonic() + 10
        while time.monotonic() < until and self.wish().wish is Wish.RUN:
            time.sleep(IDLE_S)
        self._batches = self._new_batches()

    def due(self, view: View, finishing: bool) -> bool:
        """Whether the round should end now: target reached, deadline passed, or others do so."""
        abreast = expected_group(view, self.learner.round)
        others = view.samples if view.round == self.learner.round else 0.0
        samples = self.samples + others
        if samples <= 0 or (view.present and not abreast):
            return False
        done = max(samples / self.recipe.round.target_samples, self.late_share(view))
        follow = any(view.abreast[name].stage is Stage.READY for name in abreast)
        return done >= 1 or (done >= NEARLY and follow) or (finishing and self.tokens > 0)

    def late_share(self, view: View) -> float:
        """How much of the deadline is over, by whoever of this round began it first."""
        began = view.started() if view.round == self.learner.round else None
        since = min(self.started, began or self.started)
        return (clock.now() - since) / self.recipe.round.deadline_s

    # ------------------------------------------------------------ average
    def _average(self, view: View) -> None:
        offer = self.learner.offer()
        if offer is None:
            self.release("the gradient was not finite")
            return
        note = Note(
            round=self.learner.round,
            role=self.role,
            samples=self.samples,
            tokens=self.tokens,
            loss_sum=self.loss_sum,
            fingerprint=self.learner.fingerprint(),
            extra=offer.note,
        )
        group = expected_group(view, self.learner.round)
        if not group:
            verdict = Verdict(
                note.round, Outcome.ALONE, {self.peer.peer_id: note}, reason="training alone"
            )
            self._apply(verdict, list(offer.tensors))
            return
        self.enter(Stage.READY)
        verdict, mean = self.averager.run_round(
            offer.tensors, offer.weight, note, len(group) + 1, self._watch
        )
        self._judge(verdict, mean, note, group)

    def _watch(self, activity: Activity) -> bool:
        reasons = {
            Activity.MATCHMAKING: "waiting for the others to end the round",
            Activity.AVERAGING: "averaging with the others",
        }
        self.show(activity, reasons[activity])
        self.wish()
        if activity is Activity.MATCHMAKING and self.catch_up.needed(self.tracker.view()):
            return False
        return self._leaving_for() < GIVE_UP_S

    def _judge(self, verdict: Verdict, mean: list, note: Note, group: set[str]) -> None:  # type: ignore[type-arg]
        """Applies a clean verdict of a group that speaks for the swarm; else goes back."""
        me, known = self.peer.peer_id, self.peer.coordinators
        if verdict.outcome is Outcome.PARTIAL:
            self.lost += verdict.lost
            self._repeat(verdict.reason, verdict.lost)
        elif verdict.outcome is Outcome.FAILED:
            self._repeat(verdict.reason, ())
        elif not counts(verdict.notes, group | {me}, known):
            self._repeat("most of the swarm was not in the group", ())
        elif not verdict.tokens:
            self._repeat("nobody had anything to average", ())
        elif deviates(note, verdict.notes, known):
            self.release("this peer's parameters had drifted from the swarm's")
            self.catch_up.run(verdict.round + 1)
        else:
            self.tracker.forget(group - set(verdict.notes))
            self.tracker.assume(set(verdict.notes) - {me}, verdict.round + 1)
            self._apply(verdict, mean)

    def _repeat(self, reason: str, lost: tuple[str, ...]) -> None:
        """Nothing is applied; the same round again, with who is left, or a new start."""
        log.info("Round %d is repeated: %s", self.learner.round, reason)
        self.attempts += 1
        self.tracker.forget(lost)
        self.show(Activity.WAITING, f"{reason}; the round is repeated")
        if self.attempts >= MOST_ATTEMPTS and self.tokens and lost:
            self.release(reason)
        self.enter(Stage.TRAINING)
        if lost:
            self.tracker.refreshed(3)  # the others may have gone on

    def _apply(self, verdict: Verdict, mean: list) -> None:  # type: ignore[type-arg]
        self.learner.accept(mean, [n.extra for n in verdict.notes.values() if n.tokens])
        summary = verdict.summary(self.lost)
        mine = (self.samples, self.tokens, self.compute_s)
        self.start_round()
        self.stage = Stage.TRAINING
        self.tracker.publish()
        self.peer.share_state(self.learner.round)
        self.ended(summary, *mine)

    def ended(
        self, summary: VerdictSummary, samples: int, tokens: int, compute_s: float
    ) -> None:
        """A round was applied, in which we had these samples and tokens."""
        if tokens:
            self.outbox.report(
                Receipt(
                    round=summary.round,
                    samples=samples,
                    tokens=tokens,
                    accepted=True,
                    compute_s=compute_s,
                    verdict=summary,
                )
            )

    def release(self, reason: str) -> None:
        """Drops what was accumulated, and says so."""
        if self.tokens:
            number = self.learner.round
            self.outbox.report(
                Receipt(
                    round=number,
                    samples=self.samples,
                    tokens=self.tokens,
                    accepted=False,
                    reason=reason,
                    compute_s=self.compute_s,
                    verdict=VerdictSummary(
                        round=number,
                        outcome=Outcome.FAILED,
                        members=0,
                        samples=0,
                        tokens=0,
                        reason=reason,
                    ),
                )
            )
        self.learner.begin()
        self.start_round()
