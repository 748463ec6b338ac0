"""LAMB: Adam's step, for each parameter as long as that parameter's own length allows.

You et al. 2020 (https://arxiv.org/abs/1904.00962), algorithm 2: with u = m / (sqrt(v) + eps) + w x,
m and v free of their bias, x <- x - r phi(|x|) / |u| u. As in the public configuration of the
sahajBERT run, phi cuts at 10,000; where x or u is 0, the step is Adam's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

LONGEST = 10_000.0  # of a parameter's length, as its step counts it


class Lamb(torch.optim.Optimizer):
    """Keeps what AdamW keeps, under the same names: `exp_avg`, `exp_avg_sq` and `step`."""

    def __init__(
        self, params: Iterable[Any], *, lr: float, betas: tuple[float, float], eps: float
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Of all parameters that have a gradient and the three states."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    self._step(param, param.grad, group)

    def _step(self, param: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, (beta1, beta2) = self.state[param], group["betas"]
        state["step"] += 1
        count = float(state["step"])
        mean = state["exp_avg"].lerp_(gradient, 1 - beta1) / (1 - beta1**count)
        state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        square = state["exp_avg_sq"] / (1 - beta2**count)
        update = mean.div_(square.sqrt_().add_(group["eps"]))
        update.add_(param, alpha=group["weight_decay"])
        length, stride = param.norm().clamp(max=LONGEST), update.norm()
        is_zero = (length == 0) | (stride == 0)
        param.sub_(update.mul_(torch.where(is_zero, 1.0, length / stride) * group["lr"]))
