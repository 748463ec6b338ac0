"""The optimizer behind `ctx.step`: its moments are there from the start, and somebody's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainer import recipe
from trainer.strategies.base import Strategy

EPSILON = 1e-6


def make_optimizer(
    strategy: Strategy, options: recipe.Optimizer, params: Sequence[Tensor]
) -> torch.optim.Optimizer:
    """Puts the moments into the strategy's state: `shared` ones where all peers take the same
    steps; where each takes its own, they and the count of those steps are the peer's `own`.
    """
    groups = decay_groups(options, params)
    optimizer: torch.optim.Optimizer
    if strategy.optimizer == "sgd":
        optimizer = torch.optim.SGD(
            groups, lr=options.learning_rate, momentum=strategy.momentum, foreach=True
        )
        kinds = ["momentum_buffer"] if strategy.momentum else []
    else:
        betas = (options.beta1, options.beta2)
        optimizer = torch.optim.AdamW(
            groups, lr=options.learning_rate, betas=betas, eps=EPSILON, foreach=True
        )
        kinds = ["exp_avg", "exp_avg_sq"]
    moments = {kind: [torch.zeros_like(param) for param in params] for kind in kinds}
    counts = {"step": [torch.tensor(0.0) for _ in params]}  # on the CPU, where torch wants them
    for place, param in enumerate(params):
        state = moments if strategy.optimizer == "sgd" else moments | counts
        optimizer.state[param] = {kind: tensors[place] for kind, tensors in state.items()}
    if strategy.local:
        strategy.own |= moments | counts
    else:
        strategy.shared |= moments
    return optimizer


def decay_groups(options: recipe.Optimizer, params: Sequence[Tensor]) -> list[dict[str, Any]]:
    """Biases and norms do not decay."""
    return [
        {"params": [p for p in params if p.ndim > 1], "weight_decay": options.weight_decay},
        {"params": [p for p in params if p.ndim <= 1], "weight_decay": 0.0},
    ]


def set_steps(optimizer: torch.optim.Optimizer, count: int) -> None:
    """The number of steps that AdamW believes it has taken."""
    for state in optimizer.state.values():
        state["step"].fill_(float(count))
