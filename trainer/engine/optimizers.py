"""The optimizer behind `ctx.step`: its moments are there from the start, and somebody's state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW

from trainer import recipe
from trainer.engine.lamb import Lamb
from trainer.strategies.base import Strategy

EPSILON = 1e-6
MOMENTS = ("exp_avg", "exp_avg_sq")


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
        for param in params:
            optimizer.state[param] = {kind: torch.zeros_like(param) for kind in kinds}
        counts = {"step": [torch.tensor(0.0) for _ in params]}
    else:
        kind, given = adaptive(options)
        optimizer = kind(groups, **given)
        kinds = list(MOMENTS)
        begin_adaptive(optimizer, params)
        counts = {"step": [optimizer.state[param]["step"] for param in params]}
    moments = {kind: [optimizer.state[param][kind] for param in params] for kind in kinds}
    if strategy.local:
        strategy.own |= moments | counts
    else:
        strategy.shared |= moments
    return optimizer


def adaptive(options: recipe.Optimizer) -> tuple[type[torch.optim.Optimizer], dict[str, Any]]:
    """AdamW or LAMB, and its arguments beside the parameters."""
    given = {"lr": options.learning_rate, "betas": (options.beta1, options.beta2), "eps": EPSILON}
    return (Lamb, given) if options.kind == "lamb" else (AdamW, {**given, "foreach": True})


def begin_adaptive(optimizer: torch.optim.Optimizer, params: Iterable[Tensor]) -> None:
    """Moments of zeros, and no step taken; that count is on the CPU, where torch wants it."""
    for param in params:
        moments = {kind: torch.zeros_like(param) for kind in MOMENTS}
        optimizer.state[param] = {**moments, "step": torch.tensor(0.0)}


def decay_groups(options: recipe.Optimizer, params: Sequence[Tensor]) -> list[dict[str, Any]]:
    """Biases and norms do not decay."""
    return [
        {"params": [p for p in params if p.ndim > 1], "weight_decay": options.weight_decay},
        {"params": [p for p in params if p.ndim <= 1], "weight_decay": 0.0},
    ]


def set_steps(optimizer: torch.optim.Optimizer, count: int) -> None:
    """The number of steps that it believes it has taken."""
    for state in optimizer.state.values():
        state["step"].fill_(float(count))
