"""The round loop: train until the round is due, then end it; again until it is time to leave."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from trainer.device import memory
from trainer.engine.arithmetic import Dropped
from trainer.engine.catchup import CatchUp
from trainer.engine.delivery import Delivery
from trainer.engine.ending import Ending
from trainer.engine.job import Outbox, Wishes
from trainer.engine.learner import Learner
from trainer.engine.leaving import Leaving
from trainer.engine.own_check import OwnCheck
from trainer.engine.sizing import Sizer
from trainer.engine.status import Meter, Status
from trainer.engine.tally import Tally
from trainer.engine.timing import Timing
from trainer.engine.transport import Peer
from trainer.engine.turn import Turn
from trainer.families.base import Batch
from trainer.recipe import Recipe
from trainer.sources.base import SourceUnavailable
from trainer.swarm import clock
from trainer.swarm.progress import Stage, Standing, View
from trainer.wire import Activity, Control, LeaveCause, Outcome, Role, VerdictSummary, Wish

IDLE_S = 0.25
PAUSE_S = 10.0
log = logging.getLogger(__name__)


class RoundLoop:
    """A training peer. The coordinator's loop (`coordinator.py`) overrides what differs."""

    def __init__(
        self,
        recipe: Recipe,
        role: Role,
        learner: Learner,
        peer: Peer,
        status: Status,
        outbox: Outbox,
        wishes: Wishes,
        sizer: Sizer,
        batches: Callable[[], Iterator[Batch]],
        own_check: OwnCheck | None = None,
        own_samples: int = 0,
        delivery: Delivery | None = None,
    ) -> None:
        """`own_samples` are those of the volunteer's own texts, where rounds go by passes."""
        self.recipe, self.role = recipe, role
        self.learner, self.peer = learner, peer
        self._status, self.outbox, self._wishes = status, outbox, wishes
        self._sizer, self._new_batches, self._batches = sizer, batches, batches()
        self._meter, self.tally, self._delivery = Meter(), Tally(), delivery or Delivery()
        self.turn, self.timing, self.own_check = Turn(self), Timing(self), own_check
        self.stage, self.own_samples = Stage.AWAY, own_samples
        self.share: float | None = None
        self._leaving = Leaving()
        self.averager = peer.average(learner.offer_shapes(), learner.state)
        self.tracker = peer.track(self.standing)
        self.catch_up, self._ending = CatchUp(self), Ending(self)
        status.watch_swarm(self.swarm_samples)

    def run(self) -> LeaveCause:
        """Until the site or the volunteer wishes otherwise."""
        self.peer.share_state(self.learner.round)
        self.tracker.refreshed(5)
        while True:
            control = self.wish()
            view = self.tracker.view()
            self.turn.look(view)
            finishing = control.wish is Wish.FINISH
            if control.wish is Wish.PAUSE:
                self._pause(control)
            elif control.wish is Wish.STOP and not self._nearly_over(view):
                self.release("this device stopped before the round ended")
                return control.cause or LeaveCause.STOPPED
            elif problem := self.peer.problem():
                self._wait(f"this device may not take part: {problem}")
            elif self.catch_up.needed(view):
                self.catch_up.run(view.round or 0)
            elif self.due(view, finishing):
                self._ending.run(view)
            elif finishing and self.may_finish(view):
                if self.tally.tokens:
                    self.release("the collaboration ended before this round did")
                return control.cause or LeaveCause.FINISHED
            else:
                self.enter(Stage.FULL if self.turn.rests or self.timing.full() else Stage.TRAINING)
                self.work(view)

    # ------------------------------------------------------------ what others see
    def standing(self) -> Standing:
        """Our record; also called on other threads."""
        tally = self.tally
        return Standing(
            round=self.learner.round,
            samples=tally.samples,
            tokens=tally.tokens,
            loss_sum=tally.loss_sum,
            samples_per_s=self._meter.rate(),
            role=self.role,
            stage=self.stage,
            started=tally.started,
            deadline_s=self.timing.deadline.measured(),
            at=clock.now(),
        )

    def show(self, activity: Activity, reason: str = "") -> None:
        self._status.set(
            activity,
            reason,
            round=self.learner.round,
            samples=self.tally.samples,
            tokens=self.tally.tokens,
            loss_sum=self.tally.loss_sum,
            samples_per_s=round(self._meter.rate(), 3),
            link_mbit_s=self.averager.link_mbit_s,
            share=self.share,
        )

    def enter(self, stage: Stage) -> None:
        if stage is not self.stage:
            self.stage = stage
            self.tracker.publish()

    def swarm_samples(self) -> int:
        view = self.tracker.view()
        others = view.samples if view.round == self.learner.round else 0.0
        return int(others) + self.tally.samples

    # ------------------------------------------------------------ wishes
    def wish(self) -> Control:
        self.peer.tend()
        control = self._wishes.current()
        self._leaving.note(control.wish)
        return control

    def must_leave(self) -> bool:
        """Whether not even the average that is going on may keep us."""
        self.wish()
        return self._leaving.is_overdue()

    def _nearly_over(self, view: View) -> bool:
        """Whether a leaver should still hand in what it has."""
        if not self.tally.tokens or not view.present:
            return False
        missing = self.recipe.round.target_samples - self.swarm_samples()
        return self._leaving.can_await(missing, view.samples_per_s + self._meter.rate())

    def _pause(self, control: Control) -> None:
        self.enter(Stage.AWAY)
        self.tracker.idle = True
        while control.wish is Wish.PAUSE:
            self.show(Activity.PAUSED, control.reason or "paused by the organiser")
            clock.sleep(IDLE_S)
            control = self.wish()
        self.tracker.idle = False
        self._meter.restart()
        self.tracker.refreshed(5)

    def may_finish(self, view: View) -> bool:
        return not self.tally.tokens or bool(self.timing.trouble(view))

    # ------------------------------------------------------------ one round
    def work(self, view: View) -> None:
        """One micro-batch, or a moment's rest when this round has no more for us."""
        trouble = self.timing.trouble(view)
        if enough := self.timing.enough():
            self.show(Activity.WAITING, trouble or enough)
            if self.turn.rests:
                self._meter.restart()  # a rest is not to count as slowness
            clock.sleep(IDLE_S)
            return
        company = "" if view.peers else "nobody else is here"
        why = "; ".join(words for words in (company, self.learner.thrift) if words)
        self.show(Activity.TRAINING, trouble or self._sizer.trouble() or why)
        began = clock.monotonic()
        try:
            batch = next(self._batches)
        except SourceUnavailable as error:
            self._wait(str(error))
            self._batches = self._new_batches()
            return
        try:
            loss = self.learner.learn(batch, self._sizer.rows)
        except Dropped as dropped:
            log.info("A micro-batch was dropped, %s", dropped)
            return
        except (RuntimeError, MemoryError) as error:  # torch has no better one on the CPU
            if not memory.ran_out(error):
                raise
            log.warning("Memory ran out: %s", error)
            self.release(self._sizer.ran_out())
            if self._sizer.recomputes:
                self.learner.recompute()
            return
        if loss is None:
            self.release("the loss or gradient of a micro-batch was not finite")
            return
        seconds = clock.monotonic() - began
        self.tally.add(batch, loss, seconds)
        self.tally.mark = self._delivery.mark
        self._meter.add(batch.samples)
        self._sizer.took(batch.samples, seconds, self.learner.held_bytes)
        if not self._sizer.is_settled:
            self._meter.restart()  # others hold a device to the rate that it told

    def _wait(self, reason: str) -> None:
        """For what may be different in a while."""
        log.warning("Waiting: %s", reason)
        self.enter(Stage.AWAY)
        self.show(Activity.WAITING, f"{reason}; trying again in {PAUSE_S:.0f} s")
        clock.sleep_while(lambda: self.wish().wish is Wish.RUN, PAUSE_S)

    def due(self, view: View, finishing: bool) -> bool:
        """Whether the round should end now."""
        return self.timing.due(view, finishing)

    def start_round(self) -> Tally:
        """A new tally; returns the old one."""
        done, self.tally = self.tally, Tally()
        return done

    def ended(self, summary: VerdictSummary, done: Tally) -> None:
        """A round ended, in which we had gathered `done`."""
        if not done.tokens:
            return
        own = [one.reason for one in summary.refused if one.peer == self.peer.peer_id]
        refusal = f"this device's offer {own[0]}" if own else ""
        if summary.outcome is Outcome.UNDONE:
            refusal = summary.reason
        self.outbox.report(done.receipt(summary, refusal))
        self._delivery.keep(done.mark)

    def voided(self, summary: VerdictSummary) -> None:
        """An attempt in which an offer was refused came to nothing, and is repeated."""

    def release(self, reason: str) -> None:
        """Drops what was gathered, and says so."""
        done = self.start_round()
        if done.tokens:
            self.outbox.report(done.released(self.learner.round, reason))
        self.learner.begin()
