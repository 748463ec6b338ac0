"""Devices that train one number each, on a/2 (x - b)^2: a strategy without model and engine.

Hundreds of rounds of several take a second or two, which learners would need minutes for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from tests.trainer.averaging import end_round
from trainer import catalogue
from trainer.recipe import Choice
from trainer.strategies.base import Context, Member, Offer

RATE = 0.05
SGD = {"local_optimizer": "sgd", "weigh_by": "equal"}
Problem = tuple[float, float]  # a, b
Q1: list[Problem] = [(1, 0), (4, 1)]  # the optimum is 0.8
Q3: list[Problem] = [(1, 0), (4, 1), (2, -2), (0.5, 3)]  # 0.2


class Device:
    """Steps are those of plain gradient descent; `weigh_by` may be samples: `rows` of a step."""

    def __init__(
        self, strategy: str, problem: Problem, x: float = 0.0, rate: float = RATE, **params: Any
    ) -> None:
        self.strategy = catalogue.create("strategies", Choice(name=strategy, params=params))
        self.problem, self.rate, self.round = problem, rate, 0
        self.params, self.anchor, self.gradient = (
            [torch.full((1,), value, dtype=torch.float64)] for value in (x, x, 0.0)
        )
        self.speed = 0.0
        self.begin()

    def begin(self) -> None:
        self.params[0].copy_(self.anchor[0])
        self.gradient[0].zero_()
        self.speed = 0.0
        self.context = Context(
            self.params, self.anchor, self.gradient, self._step, self.round, self.rate
        )
        self.strategy.start(self.context)

    def learn(self, steps: int, rows: int = 1) -> None:
        a, b = self.problem
        ctx = self.context
        for _ in range(steps):
            self.gradient[0].add_(self.params[0] - b, alpha=rows * a)
            ctx.samples, ctx.tokens, ctx.batch_tokens = ctx.samples + rows, ctx.tokens + rows, rows
            self.strategy.correct(ctx)
            ctx.steps += 1
            self.strategy.stepped(ctx)

    def _step(self, mean: Sequence[torch.Tensor]) -> None:
        self.speed = self.strategy.momentum * self.speed + float(mean[0])
        self.params[0].sub_(self.rate * self.speed)
        self.gradient[0].zero_()

    def offer(self) -> Offer:
        return self.strategy.offer(self.context)

    def accept(self, mean: Sequence[torch.Tensor], members: Sequence[Member]) -> None:
        self.strategy.accept(self.context, mean, members)
        self.round += 1
        self.anchor[0].copy_(self.params[0])
        self.begin()

    def join(self, other: Device) -> None:
        """As a newcomer: with nothing but the other's state."""
        self.round = other.round
        self.anchor[0].copy_(other.anchor[0])
        for kind, tensors in other.strategy.shared.items():
            self.strategy.shared[kind] = [tensor.clone() for tensor in tensors]
        self.strategy.joined()
        self.begin()

    @property
    def x(self) -> float:
        return float(self.anchor[0])


def swarm(
    strategy: str, problems: Sequence[Problem], x: float, rate: float = RATE, **params: Any
) -> list[Device]:
    options = known(strategy, **{**SGD, **params})
    return [Device(strategy, problem, x, rate, **options) for problem in problems]


def known(strategy: str, **options: Any) -> dict[str, Any]:
    """Those of `options` that this strategy has."""
    fields = catalogue.plugins("strategies")[strategy].Params.model_fields
    return {key: value for key, value in options.items() if key in fields}


def play(
    devices: Sequence[Device],
    steps: Sequence[int] | int,
    rows: Sequence[int] | None = None,
    refused: Collection[int] = (),
    lost: Collection[int] = (),
) -> None:
    """One round; `steps` of each or of all, 0 for none."""
    counts = [steps] * len(devices) if isinstance(steps, int) else steps
    for device, count, num in zip(devices, counts, rows or [1] * len(devices), strict=True):
        device.learn(count, num)
    end_round(devices, refused=refused, lost=lost)


def optimum(problems: Sequence[Problem], weights: Sequence[float] | None = None) -> float:
    """Of the weighted sum of all problems."""
    shares = weights or [1.0] * len(problems)
    top = sum(p * a * b for p, (a, b) in zip(shares, problems, strict=True))
    return top / sum(p * a for p, (a, _) in zip(shares, problems, strict=True))


def imbalance(devices: Sequence[Device]) -> float:
    """Of SCAFFOLD: c less the mean of all c_i, by the weights that they are booked with."""
    books = [device.strategy for device in devices]
    total = sum(one.booked * float(one.control[0]) for one in books if one.booked)
    mean = total / sum(one.booked for one in books)
    return float(books[0].shared["control"][0]) - mean
