"""One peer's life in a rehearsal: the real loop, started in its place and ended in some way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.engine.coordinator import CoordinatorLoop
from trainer.engine.learner import Learner
from trainer.engine.loop import RoundLoop
from trainer.engine.sizing import Sizer
from trainer.engine.status import Status
from trainer.engine.texts import held_out_batches, training_batches
from trainer.families.base import Batch
from trainer.recipe import Recipe
from trainer.simulator.clocks import Error, Timekeeper
from trainer.simulator.events import Task
from trainer.simulator.files import Files
from trainer.simulator.liars import Liar
from trainer.simulator.links import Link
from trainer.simulator.net import Net
from trainer.simulator.peer import SimulatedPeer
from trainer.swarm import clock
from trainer.text.tokenizer import Tokenizer
from trainer.wire import Body, Control, Progress, Role, Wish

COORDINATOR = "coordinator"
HELD_OUT_SAMPLES = 64
NO_LIMIT = 2**62  # bytes: this machine's memory must not decide what is rehearsed


class Surroundings:
    """What all lives of one rehearsal share."""

    report: Callable[[str, Body], None]

    def __init__(self, recipe: Recipe, files: Files, net: Net, folder: Path) -> None:
        self.recipe, self.files, self.net, self.folder = recipe, files, net, folder
        self.tokenizer = Tokenizer.of(recipe, files.tokenizer)


@dataclass
class Wishes:
    wish: Wish = Wish.RUN

    def current(self) -> Control:
        return Control(wish=self.wish)


@dataclass(frozen=True)
class Outbox:
    name: str
    around: Surroundings

    def progress(self, message: Progress) -> None:
        """Nobody looks at it."""

    def report(self, body: Body) -> None:
        self.around.report(self.name, body)


class Life:
    """`moved_at` is the swarm's round when this peer's own last changed."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        role: Role,
        link: Link,
        samples_per_s: float,
        seed: str,
        *,
        texts: tuple[Path, ...],
        liar: Liar | None,
        error: Error,
    ) -> None:
        self._around, self.name, self._role, self._link = around, name, role, link
        self._samples_per_s, self._seed, self.liar = samples_per_s, seed, liar
        self._texts = texts
        self.wishes = Wishes()
        self.learner = Learner(around.recipe, around.tokenizer.pad)
        self._sizer = Sizer(around.recipe, name, room=lambda: NO_LIMIT)
        self._timekeeper = Timekeeper(around.net.events, error)
        self.task = Task(around.net.events, self._timekeeper, self._live)
        self._timekeeper.task = self.task
        self._peer: SimulatedPeer | None = None
        self.moved_at = self._last_round = 0

    @property
    def round(self) -> int:
        return self.learner.round

    def look(self, swarm_round: int) -> None:
        if self._last_round != self.round:
            self._last_round, self.moved_at = self.round, swarm_round

    def kill(self) -> None:
        """As kill -9 does: its record stays until it expires, and its group waits for it."""
        self.task.kill()
        if self._peer is not None:
            self._peer.close(says_goodbye=False)

    def _live(self) -> None:
        around = self._around
        place = around.net.enter(self.name, self._link, self._timekeeper)
        self._peer = SimulatedPeer(
            around.net, around.recipe, self.name, place, frozenset([COORDINATOR]), self.liar
        )
        outbox = Outbox(self.name, around)
        common: dict[str, Any] = {
            "recipe": around.recipe,
            "role": self._role,
            "learner": self.learner,
            "peer": self._peer,
            "status": Status(outbox),
            "outbox": outbox,
            "wishes": self.wishes,
            "sizer": self._sizer,
        }
        if self._role is Role.COORDINATOR:
            loop: RoundLoop = CoordinatorLoop(
                folder=around.folder,
                held_out=self._held_out(),
                batches=lambda: iter(()),
                **common,
            )
        else:
            loop = RoundLoop(batches=self._batches, **common)
        loop.run()
        self._peer.close(says_goodbye=True)

    def _batches(self) -> Iterator[Batch]:
        """Real batches, each of which takes this peer its time."""
        around = self._around
        objective = self.learner.family.objective
        for batch in training_batches(
            around.recipe,
            self._texts,
            around.tokenizer,
            objective,
            self._seed,
            lambda: self._sizer.batch,
        ):
            clock.sleep(batch.samples / self._samples_per_s)
            yield batch

    def held_out_loss(self) -> float | None:
        """Of its model as it is now; None where the recipe has no held-out text."""
        batches = self._held_out()
        return self.learner.evaluate(batches)[0] if batches else None

    def _held_out(self) -> list[Batch]:
        around = self._around
        if around.files.held_out is None:
            return []
        objective = self.learner.family.objective
        return held_out_batches(
            around.recipe, around.files.held_out, around.tokenizer, objective, HELD_OUT_SAMPLES
        )
