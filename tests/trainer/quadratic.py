"""Scalar quadratics a/2 (x - b)^2 as a model family: their local steps are known exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from tests.trainer.averaging import end_round
from tests.trainer.devices import RATE
from tests.trainer.models import make_recipe
from trainer import catalogue
from trainer.engine.learner import Learner
from trainer.families import base
from trainer.families.base import Batch
from trainer.recipe import Choice, Optimizer


class Quadratic(base.Family):
    label, objective = "Scalar quadratic", base.CAUSAL

    def build(self, vocab_size: int, sequence_length: int, pad_id: int) -> torch.nn.Module:
        model = torch.nn.Module()
        model.x = torch.nn.Parameter(torch.zeros(1))
        return model

    def loss_sum(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        """A batch's ids are (a, b), and it has one target token for each of its rows."""
        a, b = batch.ids.to(model.x.dtype).T
        return (a / 2 * (model.x - b) ** 2).sum()


@contextmanager
def in_the_catalogue() -> Iterator[None]:
    """In double precision, so that a closed form holds to many digits."""
    known, before = catalogue.plugins("families"), torch.get_default_dtype()
    known["quadratic"] = Quadratic
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
    del known["quadratic"]


def quadratic(a: int, b: int, rows: int = 1) -> Batch:
    ids = torch.tensor([[a, b]] * rows)
    return Batch(ids, torch.tensor([[0, Batch.IGNORE]] * rows), torch.ones_like(ids))


def make_learner(strategy: str, x: float = 0.0, rate: float = RATE, **params: Any) -> Learner:
    """At `x`, with plain gradient descent of this rate and no clipping."""
    options = Optimizer(
        learning_rate=rate, warmup_rounds=0, schedule="constant", weight_decay=0, clip_norm=1e12
    )
    recipe = make_recipe(strategy=Choice(name=strategy, params=params), optimizer=options)
    recipe = recipe.model_copy(update={"family": Choice(name="quadratic")})
    learner = Learner(recipe, pad_id=0)
    shared = learner.state()[1][1:]
    learner.load_state(0, [torch.tensor([x]), *shared])
    return learner


def play(
    peers: Sequence[Learner],
    problems: Sequence[tuple[int, int]],
    steps: Sequence[int],
    rows: Sequence[int] | None = None,
) -> None:
    """One round of so many local steps, each peer on its own (a, b)."""
    for peer, count, (a, b), num in zip(
        peers, steps, problems, rows or [1] * len(peers), strict=True
    ):
        for _ in range(count):
            peer.learn(quadratic(a, b, num))
    end_round(peers)


def position(peer: Learner) -> float:
    return float(peer.params[0].detach())
