"""The learning rate: a function of the round and of nothing else."""

from __future__ import annotations

import math

from trainer.recipe import Optimizer


def learning_rate(optimizer: Optimizer, round_number: int) -> float:
    """Of the step that ends this round; rounds count from 0. Linear warm-up, then the schedule."""
    if round_number < optimizer.warmup_rounds:
        return optimizer.learning_rate * (round_number + 1) / optimizer.warmup_rounds
    if optimizer.schedule == "constant":
        return optimizer.learning_rate
    length = max(optimizer.total_rounds - optimizer.warmup_rounds, 1)
    done = min((round_number - optimizer.warmup_rounds) / length, 1.0)
    if optimizer.schedule == "linear":
        return optimizer.learning_rate * (1.0 - done)
    return optimizer.learning_rate * 0.5 * (1.0 + math.cos(math.pi * done))
