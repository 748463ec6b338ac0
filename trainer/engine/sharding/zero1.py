"""ZeRO-1: each process holds the whole model and its gradient, and the moments of its share.

`ZeroRedundancyOptimizer` gives each parameter to one process, and sends it to all after a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.optim import ZeroRedundancyOptimizer

from trainer import recipe
from trainer.engine.optimizers import adaptive, begin_adaptive, decay_groups
from trainer.engine.sharding.base import Held, Shard


class Moments(Shard):
    def _make_optimizer(self, options: recipe.Optimizer) -> torch.optim.Optimizer:
        groups = decay_groups(options, self.params)
        kind, given = adaptive(options)
        optimizer = ZeroRedundancyOptimizer(groups, kind, **given)
        for group in optimizer.optim.param_groups:
            begin_adaptive(optimizer.optim, group["params"])
        self._state: Any = optimizer.optim.state
        return optimizer

    def _state_of(self, index: int) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self._state.get(self.params[index], {})
        return found

    def _put(self, wholes: Sequence[Tensor], targets: Sequence[Any]) -> None:
        given = iter(wholes)
        for target in targets:
            there = next(given, target).cpu().contiguous()
            dist.broadcast(there, 0)
            target.copy_(there)

    def _summed_gradient(self) -> list[Tensor]:
        """The others begin anew."""
        found = []
        for param in self.params:
            total = param.grad.cpu()
            dist.reduce(total, 0)
            param.grad.copy_(total) if self.rank == 0 else param.grad.zero_()
            found.append(total)
        return found

    def _whole_params(self) -> list[Tensor]:
        return self.params

    def held(self) -> Held:
        params = sum(param.nbytes for param in self.params)
        return Held(params, sum(param.grad.nbytes for param in self.params), self._moment_bytes())
