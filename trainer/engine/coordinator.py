"""The coordinator's loop: a member of weight 0 that witnesses rounds and keeps the model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainer.engine import checkpoint
from trainer.engine.learner import Learner
from trainer.engine.loop import RoundLoop
from trainer.engine.tally import Tally
from trainer.engine.timing import NEARLY
from trainer.families.base import Batch
from trainer.swarm import clock
from trainer.swarm.progress import Stage, Standing, View, expected_group
from trainer.wire import (
    Activity,
    CheckpointWritten,
    HeldOut,
    LeaveCause,
    RoundSeen,
    SwarmOpened,
    VerdictSummary,
)

POLL_S = 0.2
EARLY_S = 0.5  # it has nothing to finish, so it is there before the others
LAST_PEERS_S = 20.0
log = logging.getLogger(__name__)


class CoordinatorLoop(RoundLoop):
    def __init__(
        self,
        *,
        folder: Path,
        held_out: Sequence[Batch],
        heard_at: Callable[[], float | None] = lambda: None,
        **common: Any,
    ) -> None:
        self._folder, self._held_out, self._heard_at = folder, held_out, heard_at
        self._loss: float | None = None
        self._saved = self._measured = -1
        self._finishing_since: float | None = None
        super().__init__(**common)

    def run(self) -> LeaveCause:
        opened = SwarmOpened(peer_id=self.peer.peer_id, addresses=self.peer.addresses())
        self.outbox.report(opened)
        self._saved = self.learner.round
        self._evaluate()
        cause = super().run()
        self._save()
        if cause is LeaveCause.FINISHED:  # else it is measured at the next start
            self._evaluate()
        return cause

    def standing(self) -> Standing:
        more = {"heard_at": self._heard_at(), "chosen": self.turn.chosen}
        return super().standing().model_copy(update=more)

    def work(self, view: View) -> None:
        """Nothing to accumulate: it waits for the others. After the last round it has time to keep
        what that led to, also where another member gave it."""
        over = self.timing.over()
        if over and self._measured != self.learner.round:
            self._keep()
        chosen = len(self.turn.chosen or ())
        watching = (
            f"watching the round of {chosen} chosen peers" if chosen else "watching the round"
        )
        reason = over or self.timing.missing(view) or watching
        self.show(Activity.WAITING, reason if view.peers else "no peer is training yet")
        clock.sleep(POLL_S)

    def due(self, view: View, finishing: bool) -> bool:
        """Others follow it, so one peer that says it is ready is not enough to call them all."""
        group = expected_group(view, self.learner.round)
        if not group or self.timing.over() or self.timing.lacks_offers(view):
            return False
        timing = self.recipe.round
        samples = view.samples + view.samples_per_s * EARLY_S
        done = max(samples / timing.target_samples, self.timing.late_share(view))
        ready = sum(view.abreast[name].stage is Stage.READY for name in group)
        called = 2 * ready > len(group) or (ready > 0 and (finishing or done >= NEARLY))
        return view.samples > 0 and (done >= 1 or called or self.timing.enough_done(view))

    def may_finish(self, view: View) -> bool:
        """Once the others have handed in their last round and left, or have had time for it."""
        now = clock.monotonic()
        self._finishing_since = self._finishing_since or now
        return not view.present or now - self._finishing_since > LAST_PEERS_S

    def ended(self, summary: VerdictSummary, done: Tally) -> None:
        self.outbox.report(RoundSeen(verdict=summary))
        self._loss = summary.loss
        if self.learner.round % self.recipe.round.checkpoint_every == 0:
            self._keep()

    def voided(self, summary: VerdictSummary) -> None:
        self.outbox.report(RoundSeen(verdict=summary))

    def _keep(self) -> None:
        self._save()
        self._evaluate()

    def _evaluate(self) -> None:
        """Measures the parameters that the last round led to, once, and reports them under it."""
        done = self.learner.round - 1
        is_new, self._measured = self._measured != self.learner.round, self.learner.round
        if is_new and self._held_out and done >= 0:
            loss, tokens = self.learner.evaluate(self._held_out)
            self.outbox.report(HeldOut(round=done, loss=loss, tokens=tokens))

    def _save(self) -> None:
        """Skipped when this round has its checkpoint; a full disk costs only this one."""
        number = self.learner.round
        if number == self._saved or number == 0:
            return
        path = self._folder / checkpoint.filename(number)
        try:
            self.learner.save(path)
        except OSError as error:
            log.error(
                "The checkpoint of round %d could not be written (%s); the ones before it are "
                "kept. Make room in %s.",
                number,
                error.strerror or error,
                self._folder,
            )
            return
        self._saved = number
        checkpoint.prune(self._folder)
        self.outbox.report(
            CheckpointWritten(
                round=number,
                filename=path.name,
                sha256=checkpoint.sha256_of(path),
                size_bytes=path.stat().st_size,
                loss=self._loss,
            )
        )


def resume(learner: Learner, folder: Path) -> None:
    """Loads the newest checkpoint that is whole; says which ones were not."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in checkpoint.newest_first(folder):
        try:
            learner.load(path)
        except checkpoint.BadCheckpoint as error:
            log.warning("%s; going back to the one before it", error)
            continue
        log.info("Resuming at round %d from %s", learner.round, path.name)
        return
