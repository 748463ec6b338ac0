"""The learner of a peer whose micro-batches several processes of its device share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from trainer import catalogue
from trainer.device import memory
from trainer.engine.group import Group
from trainer.engine.learner import Learner
from trainer.engine.shard import KINDS, Command, Shard
from trainer.families.base import Batch
from trainer.recipe import Recipe
from trainer.strategies.base import Context, Offer
from trainer.swarm.orphans import ProcessEnded


class GroupLearner(Learner):
    """`size` processes learn what one would; each holds the moments of its share (`shard.py`)."""

    def __init__(self, recipe: Recipe, pad_id: int, size: int, folder: Path) -> None:
        if catalogue.create("strategies", recipe.strategy).local:
            raise ValueError(
                f"{recipe.strategy.name} takes local steps, which the processes of a group do not "
                "share yet: start this device without --processes"
            )
        self._group = Group(size, recipe, pad_id, folder)
        super().__init__(recipe, pad_id)
        self._base_bytes = memory.used_bytes()

    def _make_optimizer(self) -> torch.optim.Optimizer:
        self._shard = Shard(self.family, self.model, self.recipe.optimizer)
        for kind in KINDS:  # names and shapes: what they hold is in the shards
            self.strategy.shared[kind] = [torch.empty_like(p, device="meta") for p in self.params]
        return self._shard.optimizer

    @contextmanager
    def _led(self, command: Command, *numbers: int) -> Iterator[Shard]:
        """Nobody else leads meanwhile. Raises ProcessEnded when one of the others has."""
        with self._lock:
            try:
                self._shard.lead(command, *numbers)
                yield self._shard
            except RuntimeError as error:
                if problem := self._group.problem():
                    raise ProcessEnded(problem) from error
                raise

    @property
    def device_name(self) -> str:
        return f"{super().device_name} x {self._shard.size}"

    def begin(self) -> Context:
        context = super().begin()
        with self._led(Command.CLEAR):
            pass  # ours is cleared
        return context

    def _accumulate(self, batch: Batch, rows: int) -> float | None:
        with self._led(Command.LEARN, batch.samples, batch.ids.shape[1], rows) as shard:
            loss, taken_bytes, ran_out = shard.learn(batch, rows)
        if ran_out:
            raise MemoryError("memory ran out in a process of this device's group")
        self.held_bytes = self._base_bytes + taken_bytes
        return loss if math.isfinite(loss) else None

    def offer(self) -> Offer | None:
        with self._led(Command.REDUCE) as shard:
            shard.reduce()
        return super().offer()

    def _move(self, rate: float) -> None:
        with self._led(Command.STEP) as shard:
            shard.step(rate)

    def state(self) -> tuple[dict[str, int], list[Tensor]]:
        with self._led(Command.GATHER) as shard:
            moments = shard.gather()
            return {"round": self.round}, [*(a.cpu().clone() for a in self.anchor), *moments]

    def load_state(self, round_number: int, tensors: Sequence[Tensor]) -> None:
        with self._lock, torch.no_grad():
            super().load_state(round_number, tensors)
            with self._led(Command.LOAD, round_number) as shard:
                shard.load(round_number, tensors[len(self.anchor) :])

    def close(self) -> None:
        self._group.close(self._shard)
