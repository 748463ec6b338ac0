"""The learner of a peer whose micro-batches several processes of its device share."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from trainer import catalogue
from trainer.device import memory
from trainer.device.precision import Kind
from trainer.engine.arithmetic import Dropped, chosen
from trainer.engine.following import Assignment
from trainer.engine.group import Group
from trainer.engine.learner import Learner
from trainer.engine.optimizers import MOMENTS
from trainer.engine.sharding import make_shard
from trainer.engine.sharding.base import Command, Held, Shard
from trainer.families.base import Batch
from trainer.recipe import Recipe
from trainer.strategies.base import Offer

MIB = 2**20
TINY = 1e-6  # as torch's clip_grad_norm_ has it
log = logging.getLogger(__name__)


class GroupLearner(Learner):
    """`size` processes learn what one would; `split` says what each holds a share of.

    What the swarm needs is whole all the same: this first process keeps the anchor in the
    processor's memory, and has there each offer, average and state while it is on its way. No step
    is taken between averages, so the anchor and the parameters are one.
    """

    may_recompute = False  # the other processes would have to, too

    def __init__(
        self,
        recipe: Recipe,
        pad_id: int,
        size: int,
        folder: Path,
        split: str = "optimizer",
        base: Path | None = None,
        computes: Kind | None = None,
    ) -> None:
        if catalogue.create("strategies", recipe.strategy).local:
            raise ValueError(
                f"{recipe.strategy.name} takes local steps, which the processes of a group do not "
                "share yet: start this device without --processes"
            )
        self._assignment = Assignment(
            recipe=recipe,
            pad_id=pad_id,
            base=base,
            split=split,
            computes=computes or chosen(recipe),
            num_threads=max(1, torch.get_num_threads() // size),
        )
        self._group = Group(size, folder)
        try:
            self._group.meet(self._assignment)
            super().__init__(recipe, pad_id, base, computes=self._assignment.computes)
        except BaseException:
            self._group.end()
            raise
        self._base_bytes = memory.used_bytes()

    def _make_optimizer(self) -> torch.optim.Optimizer:
        options, split = self.recipe.optimizer, self._assignment.split
        with self._group.losses_named():
            self._shard = make_shard(split, self.family, self.model, options, self.arithmetic)
        self._name = f"{super().device_name} x {self._shard.size}"
        self.device = torch.device("cpu")  # of whole tensors
        self.params = self.anchor = [anchor.cpu() for anchor in self.anchor]
        for kind in MOMENTS:  # names and shapes: what they hold is in the shards
            self.strategy.shared[kind] = [torch.empty_like(p, device="meta") for p in self.params]
        return self._shard.optimizer

    @contextmanager
    def _led(self, command: Command, *numbers: int) -> Iterator[Shard]:
        """Nobody else leads meanwhile. Raises ProcessEnded when one of the others has."""
        with self._lock, self._group.losses_named():
            self._shard.lead(command, *numbers)
            yield self._shard

    @property
    def device_name(self) -> str:
        return self._name

    def _rewind(self) -> list[Tensor]:
        with self._led(Command.CLEAR) as shard:
            shard.clear()
        return self._nothing()

    def _nothing(self) -> list[Tensor]:
        """Zeros of the parameters' shapes that take no memory."""
        return [torch.zeros(()).expand(param.shape) for param in self.params]

    def _accumulate(self, batch: Batch, rows: int) -> float | None:
        with self._led(Command.LEARN, batch.samples, batch.ids.shape[1], rows) as shard:
            learned = shard.learn(batch, rows)
        if learned.ran_out:
            raise MemoryError("memory ran out in a process of this device's group")
        if learned.dropped:
            raise Dropped(learned.dropped)
        self.held_bytes = self._base_bytes + learned.taken_bytes
        return learned.loss if math.isfinite(learned.loss) else None

    def offer(self) -> Offer | None:
        with self._led(Command.COLLECT) as shard:
            self.context.gradient = shard.collect()
        offer = super().offer()
        self.context.gradient = self._nothing()
        return offer

    def _step(self, mean: Sequence[Tensor]) -> None:
        """Clipped as `clip_grad_norm_` does it."""
        norm = float(get_total_norm(mean))
        share = min(1.0, self.recipe.optimizer.clip_norm / (norm + TINY))
        with self._led(Command.STEP) as shard:
            params = shard.step(self.context.learning_rate, [share * tensor for tensor in mean])
            for anchor, param in zip(self.anchor, params, strict=True):
                anchor.copy_(param)

    def state(self) -> tuple[dict[str, int], list[Tensor]]:
        with self._led(Command.GATHER) as shard:
            moments = shard.gather()
            return {"round": self.round}, [*(anchor.clone() for anchor in self.anchor), *moments]

    def load_state(self, round_number: int, tensors: Sequence[Tensor]) -> None:
        with self._lock:
            super().load_state(round_number, tensors)
            with self._led(Command.LOAD, round_number) as shard:
                shard.load(round_number, self.anchor, tensors[len(self.anchor) :])

    def weigh(self) -> list[Held]:
        """What each process holds between two micro-batches."""
        with self._led(Command.WEIGH) as shard:
            return shard.weigh()

    def close(self) -> None:
        self._group.close(self._shard)
