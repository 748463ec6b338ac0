"""What one process of a group computes and keeps: a share of each micro-batch and of the moments.

ZeRO-1 (Rajbhandari et al. 2020, section 5.1): each process holds the whole model and its gradient,
and AdamW's moments of its own share of the parameters only.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.optim import ZeroRedundancyOptimizer

from trainer import recipe
from trainer.device import memory
from trainer.engine.model import trainable
from trainer.engine.optimizers import EPSILON, decay_groups
from trainer.families.base import Batch

KINDS = ("exp_avg", "exp_avg_sq")
HEAD = 4  # numbers of a command: which, and up to three more


class Command(IntEnum):
    LEARN = 1
    REDUCE = 2
    STEP = 3
    CLEAR = 4
    LOAD = 5
    GATHER = 6
    END = 7


class Shard:
    """All methods but `lead` and `obey` run in all processes at once, called there by `obey`.

    Tensors travel through the processor's memory, because gloo sends no others.
    """

    def __init__(self, family: Any, model: Any, options: recipe.Optimizer) -> None:
        self._family, self._model = family, model
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.params: list[Tensor] = [param for _, param in trainable(model)]
        self.clear()
        self.optimizer = ZeroRedundancyOptimizer(
            decay_groups(options, self.params),
            torch.optim.AdamW,
            lr=options.learning_rate,
            betas=(options.beta1, options.beta2),
            eps=EPSILON,
            foreach=True,
        )
        self._owners = self._agree_on_owners()
        for param in self._own():
            self._state[param] = {kind: torch.zeros_like(param) for kind in KINDS}
            self._state[param]["step"] = torch.tensor(0.0)
        self._base_bytes = memory.used_bytes()

    @property
    def _state(self) -> Any:
        return self.optimizer.optim.state

    def _own(self) -> list[Tensor]:
        """The parameters that this process takes the steps of."""
        return [param for group in self.optimizer.optim.param_groups for param in group["params"]]

    def _agree_on_owners(self) -> list[int]:
        """For each parameter the process that holds its moments."""
        own = {id(param) for param in self._own()}
        owners = torch.tensor([self.rank * (id(param) in own) for param in self.params])
        dist.all_reduce(owners)
        return [int(owner) for owner in owners]

    @property
    def moment_bytes(self) -> int:
        """Of the moments that this process holds."""
        return sum(self._state[p][kind].nbytes for p in self._own() for kind in KINDS)

    # ------------------------------------------------------------ who does what
    def lead(self, command: Command, *numbers: int) -> None:
        """From the first process: tells the others what to do with it next."""
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
            self.load(numbers[0], [])
        else:
            acts = {Command.REDUCE: self.reduce, Command.STEP: self.step, Command.CLEAR: self.clear}
            act = {**acts, Command.GATHER: self.gather}.get(Command(command))
            if act is None:
                return False
            act()
        return True

    # ------------------------------------------------------------ the work
    def learn(self, batch: Batch, rows: int) -> tuple[float, int, bool]:
        """Adds the gradient of this process's share of `batch`, which the first process has.

        The summed loss of all shares, the bytes that the micro-batch took in all processes, and
        whether memory ran out in one of them.
        """
        for tensor in (batch.ids, batch.targets, batch.attention):
            dist.broadcast(tensor, 0)
        loss, ran_out, taken = 0.0, False, 0
        try:
            share = batch.share(self.rank, self.size)
            for part in share.parts(rows) if share.samples else ():
                summed = self._family.loss_sum(self._model, part.to(self.params[0].device))
                taken = max(taken, memory.used_bytes() - self._base_bytes)
                loss += float(summed.detach())
                if torch.isfinite(summed):
                    summed.backward()
        except (RuntimeError, MemoryError) as error:
            if not memory.ran_out(error):
                raise
            ran_out = True
        report = torch.tensor([loss, float(taken), float(ran_out)], dtype=torch.float64)
        dist.all_reduce(report)
        return float(report[0]), int(report[1]), bool(report[2])

    def reduce(self) -> None:
        """The first process gets the sum of what all have accumulated, the others begin anew."""
        for gradient in self._gradient():
            total = gradient.cpu()
            dist.reduce(total, 0)
            gradient.copy_(total) if self.rank == 0 else gradient.zero_()

    def step(self, rate: float = 0.0) -> None:
        """One step along the first process's gradient; each steps its share and sends it to all."""
        given = torch.tensor(rate, dtype=torch.float64)
        dist.broadcast(given, 0)
        for gradient in self._gradient():
            self._broadcast(gradient)
        for group in self.optimizer.param_groups:
            group["lr"] = float(given)
        self.optimizer.step()
        self.clear()

    def clear(self) -> None:
        """Nothing is accumulated."""
        for param in self.params:
            if param.grad is None:
                param.grad = torch.zeros_like(param)
            param.grad.zero_()

    def _gradient(self) -> list[Tensor]:
        return [param.grad for param in self.params if param.grad is not None]

    @staticmethod
    def _broadcast(tensor: Tensor) -> None:
        there = tensor.detach().cpu()
        dist.broadcast(there, 0)
        tensor.detach().copy_(there)

    # ------------------------------------------------------------ state
    def load(self, steps: int, moments: Sequence[Tensor]) -> None:
        """Parameters of the first process for all, and to each the moments of its share."""
        for param in self.params:
            self._broadcast(param)
        given = iter(moments)
        for kind in KINDS:
            for param, owner in zip(self.params, self._owners, strict=True):
                moment = next(given).cpu().contiguous() if self.rank == 0 else None
                if owner == self.rank:
                    if moment is None:
                        moment = torch.empty_like(param, device="cpu")
                        dist.recv(moment, 0)
                    self._state[param][kind].copy_(moment)
                elif moment is not None:
                    dist.send(moment, owner)
        for param in self._own():
            self._state[param]["step"].fill_(float(steps))
        self.clear()

    def gather(self) -> list[Tensor]:
        """To the first process, copies of all moments by kind and parameter; to the others none."""
        found: list[Tensor] = []
        for kind in KINDS:
            for param, owner in zip(self.params, self._owners, strict=True):
                if owner == self.rank == 0:
                    found.append(self._state[param][kind].detach().cpu().clone())
                elif self.rank == 0:
                    found.append(torch.empty_like(param, device="cpu", requires_grad=False))
                    dist.recv(found[-1], owner)
                elif owner == self.rank:
                    dist.send(self._state[param][kind].detach().cpu(), 0)
        return found
