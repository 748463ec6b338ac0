"""ZeRO-2 and ZeRO-3 by torch's FSDP2: each process keeps its rows of every tensor.

A block's parameters are gathered from all processes before it is computed, and its gradient is
summed and split as soon as it is there, micro-batch by micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn import Module, ModuleList

from trainer import recipe
from trainer.engine.model import place
from trainer.engine.optimizers import adaptive, begin_adaptive, decay_groups
from trainer.engine.sharding.base import Held, Shard
from trainer.engine.sharding.loss import Loss
from trainer.engine.sharding.pieces import deal, fetch, local


def blocks(model: Module) -> Iterator[Module]:
    """The members of the outermost lists of modules: a model's layers.

    One that is used many times (ALBERT's) is one block. Parameters that are in no block, tied ones
    among them, are gathered for the whole pass.
    """
    for child in model.children():
        if isinstance(child, ModuleList):
            yield from child
        else:
            yield from blocks(child)


class Gradients(Shard):
    """ZeRO-2: gradient and moments are split; gathered parameters stay until the next step."""

    in_step = True
    keeps_parameters: ClassVar[bool] = True
    offloads: ClassVar[bool] = False

    def _cut(self, loss: Loss) -> Module:
        device = place()
        mesh = init_device_mesh(device.type, (self.size,))
        policy = CPUOffloadPolicy(pin_memory=device.type == "cuda")
        for module in (*blocks(loss.model), loss):
            fully_shard(
                module,
                mesh=mesh,
                reshard_after_forward=not self.keeps_parameters,
                offload_policy=policy if self.offloads else OffloadPolicy(),
            )
        self._cut_modules = [m for m in loss.modules() if isinstance(m, FSDPModule)]
        for module in self._cut_modules:
            module.set_gradient_divide_factor(1.0)  # losses are sums, so gradients are, too
            module.set_force_sum_reduction_for_comms(True)  # gloo knows no other
            module.set_reshard_after_backward(not self.keeps_parameters)
        return loss

    def _make_optimizer(self, options: recipe.Optimizer) -> torch.optim.Optimizer:
        groups = decay_groups(options, self.params)
        kind, given = adaptive(options)
        optimizer = kind(groups, **given)
        begin_adaptive(optimizer, self.params)
        return optimizer

    def _state_of(self, index: int) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.optimizer.state[self.params[index]]
        return found

    def _put(self, wholes: Sequence[Tensor], targets: Sequence[Any]) -> None:
        given = iter(wholes)
        for target, shares in zip(targets, self._shares, strict=True):
            deal(next(given, None), local(target), shares)

    def _summed_gradient(self) -> list[Tensor]:
        return self._whole([param.grad for param in self.params])

    def _whole_params(self) -> list[Tensor]:
        return self._whole(self.params)

    def _whole(self, tensors: Sequence[Any]) -> list[Tensor]:
        return [
            fetch(local(tensor), shares, tensor.shape)
            for tensor, shares in zip(tensors, self._shares, strict=True)
        ]

    def clear(self) -> None:
        """Also drops gathered parameters, which may be old."""
        super().clear()
        for module in self._cut_modules:
            module.reshard()

    def held(self) -> Held:
        gathered = [p for p in self._loss.parameters() if not isinstance(p, DTensor)]
        params = sum(tensor.nbytes for tensor in [*map(local, self.params), *gathered])
        gradient = sum(local(param.grad).nbytes for param in self.params)
        return Held(params, gradient, self._moment_bytes())


class Parameters(Gradients):
    """ZeRO-3: the parameters are split as well; a block's are whole while it is computed."""

    keeps_parameters = False


class Offloaded(Parameters):
    """ZeRO-3 whose shares lie in the processor's memory; a GPU has a block at a time."""

    offloads = True
