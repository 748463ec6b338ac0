"""What one process of a group computes and keeps, and how it learns what all do next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module

from trainer import recipe
from trainer.device import memory
from trainer.engine.arithmetic import Arithmetic, Dropped, all_finite
from trainer.engine.model import place, trainable
from trainer.engine.optimizers import MOMENTS
from trainer.engine.sharding import pieces
from trainer.engine.sharding.loss import Loss
from trainer.families.base import Batch

HEAD = 4  # numbers of a command: which, and up to three more


class Command(IntEnum):
    LEARN = 1
    COLLECT = 2
    STEP = 3
    CLEAR = 4
    LOAD = 5
    GATHER = 6
    WEIGH = 7
    END = 8


class Held(NamedTuple):
    """Bytes of the tensors of one process, between two micro-batches."""

    parameters: int
    gradient: int
    moments: int


class Learned(NamedTuple):
    """What came of a micro-batch in all processes: the summed loss, the bytes that it took, whether
    memory ran out in one of them, and why it was dropped, if it was.
    """

    loss: float = 0.0
    taken_bytes: int = 0
    ran_out: bool = False
    dropped: str = ""


class Shard:
    """All methods but `lead` and `obey` run in all processes at once, called there by `obey`.

    Tensors travel through the processor's memory, because gloo sends no others; whole ones are in
    the first process only, and lie there.
    """

    in_step: ClassVar[bool] = False  # no process gets through a pass without the others

    def __init__(
        self, family: Any, model: Any, options: recipe.Optimizer, arithmetic: Arithmetic
    ) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.broken = ""  # why no command can be led any more
        self._arithmetic = arithmetic
        self._loss = self._cut(Loss(family, model, arithmetic))
        self.params: list[Any] = [param for _, param in trainable(model)]
        self.optimizer = self._make_optimizer(options)
        self.clear()
        self._shares = pieces.agree(m.numel() for m in self._moments(MOMENTS[0]))
        self._base_bytes = memory.used_bytes()

    # ------------------------------------------------------------ what the ways differ in
    def _cut(self, loss: Loss) -> Module:
        """`loss` as this process computes it; its parameters may be others afterwards."""
        return loss

    def _make_optimizer(self, options: recipe.Optimizer) -> torch.optim.Optimizer:
        """AdamW or LAMB of this process's share, with moments of zeros."""
        raise NotImplementedError

    def _state_of(self, index: int) -> dict[str, Tensor]:
        """The optimizer's state of this process's share of a parameter; empty where it has none."""
        raise NotImplementedError

    def _put(self, wholes: Sequence[Tensor], targets: Sequence[Any]) -> None:
        """What the first process has goes into all processes' `targets`, one per parameter."""
        raise NotImplementedError

    def _summed_gradient(self) -> list[Tensor]:
        raise NotImplementedError

    def _whole_params(self) -> list[Tensor]:
        """For the first process; they may be the model's own."""
        raise NotImplementedError

    def held(self) -> Held:
        raise NotImplementedError

    # ------------------------------------------------------------ who does what
    def lead(self, command: Command, *numbers: int) -> None:
        """From the first process: tells the others what to do with it next."""
        if self.broken:
            raise RuntimeError(self.broken)
        head = [int(command), *numbers]
        dist.broadcast(torch.tensor(head + [0] * (HEAD - len(head))), 0)

    def obey(self) -> bool:
        """Waits for one command and does it; False after the last."""
        head = torch.zeros(HEAD, dtype=torch.int64)
        dist.broadcast(head, 0)
        command, *numbers = (int(number) for number in head)
        if command == Command.LEARN:
            samples, length, rows = numbers
            ids = torch.zeros(samples, length, dtype=torch.int64)
            self.learn(Batch(ids, ids.clone(), ids.clone()), rows)
        elif command == Command.LOAD:
            self.load(numbers[0], [], [])
        else:
            acts = {Command.COLLECT: self.collect, Command.STEP: self.step}
            more = {Command.CLEAR: self.clear, Command.GATHER: self.gather}
            act = {**acts, **more, Command.WEIGH: self.weigh}.get(Command(command))
            if act is None:
                return False
            act()
        return True

    # ------------------------------------------------------------ the work
    def learn(self, batch: Batch, rows: int) -> Learned:
        """Adds the gradient of this process's share of `batch`, which the first process has."""
        for tensor in (batch.ids, batch.targets, batch.attention):
            dist.broadcast(tensor, 0)
        passes, fine = partial(self._compute, batch, rows), self._all_finite
        try:
            found = self._arithmetic.gather(self.params, batch.tokens, passes, fine)
        except Dropped as dropped:
            return Learned(dropped=str(dropped))
        return found or Learned(math.nan)

    def _compute(self, batch: Batch, rows: int, factor: float) -> Learned | None:
        """None where the loss is not finite."""
        loss, ran_out, taken = 0.0, False, 0
        try:
            for part, counts in self._passes(batch, rows):
                summed = self._loss(part.to(place())) * counts
                taken = max(taken, memory.used_bytes() - self._base_bytes)
                loss += float(summed.detach())
                (factor * summed).backward()
        except (RuntimeError, MemoryError) as error:
            if not memory.ran_out(error):
                raise
            if self.in_step:
                self.broken = "memory ran out while the processes of this device's group worked"
                raise MemoryError(self.broken) from error
            ran_out = True
        report = torch.tensor([loss, float(taken), float(ran_out)], dtype=torch.float64)
        dist.all_reduce(report)
        learned = Learned(float(report[0]), int(report[1]), bool(report[2]))
        return learned if learned.ran_out or math.isfinite(learned.loss) else None

    def _all_finite(self, made: list[Any]) -> bool:
        """In all processes, which so decide alike."""
        num_bad = torch.tensor(float(not all_finite(map(pieces.local, made))))
        dist.all_reduce(num_bad)
        return not num_bad

    def _passes(self, batch: Batch, rows: int) -> Iterator[tuple[Batch, float]]:
        """This process's sequences, at most `rows` at a time, and 1 for what counts.

        As many passes in each process: who has no more sequences takes one that counts 0.
        """
        share = batch.share(self.rank, self.size)
        parts = list(share.parts(rows)) if share.samples else []
        longest = batch.share(0, self.size).samples
        for number in range(-(-longest // rows)):
            filler = batch.share(0, batch.samples), 0.0
            yield (parts[number], 1.0) if number < len(parts) else filler

    @torch.no_grad()
    def collect(self) -> list[Tensor]:
        """To the first process, the sum of what all have accumulated."""
        return self._summed_gradient()

    @torch.no_grad()
    def step(self, rate: float = 0.0, gradient: Sequence[Tensor] = ()) -> list[Tensor]:
        """One step along the first process's `gradient`, which gets the new parameters."""
        given = torch.tensor(rate, dtype=torch.float64)
        dist.broadcast(given, 0)
        self._put(gradient, [param.grad for param in self.params])
        for group in self.optimizer.param_groups:
            group["lr"] = float(given)
        self.optimizer.step()
        self.clear()
        return self._whole_params()

    @torch.no_grad()
    def clear(self) -> None:
        """Nothing is accumulated."""
        for param in self.params:
            if param.grad is None:
                param.grad = torch.zeros_like(param)
            param.grad.zero_()

    # ------------------------------------------------------------ state
    @torch.no_grad()
    def load(self, steps: int, params: Sequence[Tensor], moments: Iterable[Tensor]) -> None:
        """The first process's parameters for all, and to each the moments of its share."""
        self._put(params, self.params)
        given = iter(moments)
        for kind in MOMENTS:
            for index, mine in enumerate(self._moments(kind)):
                pieces.deal(next(given, None), mine, self._shares[index])
        for index in range(len(self.params)):
            if state := self._state_of(index):
                state["step"].fill_(float(steps))
        self.clear()

    @torch.no_grad()
    def gather(self) -> list[Tensor]:
        """To the first process, copies of all moments by kind and parameter."""
        found = []
        for kind in MOMENTS:
            for index, mine in enumerate(self._moments(kind)):
                found.append(pieces.fetch(mine, self._shares[index], self.params[index].shape))
        return found

    def weigh(self) -> list[Held]:
        """What each process holds."""
        mine = torch.tensor(self.held())
        all_of_them = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(all_of_them, mine)
        return [Held(*(int(number) for number in held)) for held in all_of_them]

    def _moments(self, kind: str) -> Iterator[Tensor]:
        """This process's share of each parameter's moment; empty where it has none."""
        for index in range(len(self.params)):
            state = self._state_of(index)
            yield pieces.local(state[kind]) if state else torch.empty(0)

    def _moment_bytes(self) -> int:
        return sum(mine.nbytes for kind in MOMENTS for mine in self._moments(kind))
