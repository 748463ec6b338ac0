"""FedProx's synthetic(1, 1): 30 devices with a softmax regression of their own each.

Li et al. 2020, section 5.1, as its authors' generate_synthetic.py makes it: 60 features, 10
classes, sizes int(lognormal(4, 2)) + 50, alpha and beta as standard deviations, labels without
noise, 90 % to train. Here sizes end at 20,050, and there is a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainer import catalogue
from trainer.recipe import Choice
from trainer.strategies.base import Context, Member, Offer

DEVICES, FEATURES, CLASSES = 30, 60, 10
ALPHA = BETA = 1.0
LONGEST = 20_000
MICRO_BATCH, RATE = 10, 0.01


@dataclass(frozen=True)
class Split:
    """`inputs` have a 1 behind the features; `labels` are class numbers."""

    inputs: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


def generate(seed: int) -> list[tuple[Split, Split]]:
    """What each device trains on and is tested on."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.lognormal(4, 2, DEVICES).astype(int) + 50, LONGEST)
    models, inputs = rng.normal(0, ALPHA, DEVICES), rng.normal(0, BETA, DEVICES)
    spread = np.sqrt(np.arange(1, FEATURES + 1) ** -1.2)
    made = []
    for size, model, middle in zip(sizes, models, inputs, strict=True):
        center = rng.normal(middle, 1, FEATURES)
        weights, bias = rng.normal(model, 1, (FEATURES, CLASSES)), rng.normal(model, 1, CLASSES)
        x = center + rng.normal(size=(size, FEATURES)) * spread
        y = (x @ weights + bias).argmax(1)
        order, kept = rng.permutation(size), int(0.9 * size)
        made.append((_split(x, y, order[:kept]), _split(x, y, order[kept:])))
    return made


def _split(x: np.ndarray, y: np.ndarray, rows: np.ndarray) -> Split:
    inputs = np.concatenate([x[rows], np.ones((len(rows), 1))], axis=1)
    return Split(torch.from_numpy(inputs), torch.from_numpy(y[rows]))


class Client:
    """One device: a strategy of the catalogue, and the loop that drives it. All begin at 0."""

    def __init__(self, choice: Choice, data: Split) -> None:
        self.strategy = catalogue.create("strategies", choice)
        self._data, self._targets = data, torch.eye(CLASSES, dtype=torch.float64)[data.labels]
        self.params, self.anchor, self.gradient = (
            [torch.zeros(FEATURES + 1, CLASSES, dtype=torch.float64)] for _ in range(3)
        )
        self.round = 0
        self.begin()

    def begin(self) -> None:
        self.params[0].copy_(self.anchor[0])
        self.gradient[0].zero_()
        self.context = Context(
            self.params, self.anchor, self.gradient, self._step, self.round, RATE
        )
        self.strategy.start(self.context)

    def learn(self, epochs: int, rng: np.random.Generator) -> None:
        """A device counts by its data, however often it went through them, as in the paper."""
        for _ in range(epochs):
            order = torch.from_numpy(rng.permutation(len(self._data)))
            inputs = self._data.inputs[order].split(MICRO_BATCH)
            targets = self._targets[order].split(MICRO_BATCH)
            for x, y in zip(inputs, targets, strict=True):
                self._learn(x, y)
        self.context.tokens = self.context.samples = len(self._data)

    def _learn(self, x: Tensor, y: Tensor) -> None:
        ctx = self.context
        self.gradient[0].addmm_(x.T, torch.softmax(x @ self.params[0], 1).sub_(y))
        ctx.batch_tokens = len(x)
        self.strategy.correct(ctx)
        ctx.steps += 1
        self.strategy.stepped(ctx)

    def _step(self, mean: Sequence[Tensor]) -> None:
        self.params[0].sub_(mean[0], alpha=RATE)
        self.gradient[0].zero_()

    def offer(self) -> Offer:
        return self.strategy.offer(self.context)  # type: ignore[no-any-return]

    def accept(self, mean: Sequence[Tensor], members: Sequence[Member]) -> None:
        self.strategy.accept(self.context, mean, members)
        self.round += 1
        self.anchor[0].copy_(self.params[0])
        self.begin()


def measure(model: Tensor, data: Sequence[tuple[Split, Split]]) -> tuple[float, float]:
    """Mean loss of all that is trained on, and the share of the tests that are right."""
    train, test = (
        Split(torch.cat([p.inputs for p in parts]), torch.cat([p.labels for p in parts]))
        for parts in zip(*data, strict=True)
    )
    loss = torch.nn.functional.cross_entropy(train.inputs @ model, train.labels)
    right = (test.inputs @ model).argmax(1) == test.labels
    return float(loss), float(right.double().mean())
