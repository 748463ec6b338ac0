"""The summed loss as a module's forward pass, so that what hooks into passes sees all of it."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import Module

from trainer.engine.arithmetic import Arithmetic
from trainer.families.base import Batch


class Loss(Module):
    def __init__(self, family: Any, model: Any, arithmetic: Arithmetic) -> None:
        super().__init__()
        self._family, self.model, self._arithmetic = family, model, arithmetic

    def forward(self, batch: Batch) -> Tensor:
        with self._arithmetic.forward(batch.ids.device):
            loss: Tensor = self._family.loss_sum(self.model, batch)
        return loss
