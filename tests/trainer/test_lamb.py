"""LAMB: You et al. 2020, algorithm 2, worked out in double by hand, and in the engine."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.trainer.models import make_batch, make_recipe, play_round
from trainer.engine.lamb import LONGEST, Lamb
from trainer.engine.learner import Learner
from trainer.engine.optimizers import begin_adaptive
from trainer.recipe import Optimizer

RATE, BETAS, EPS, DECAY = 0.02, (0.9, 0.98), 1e-6, 0.1


def optimizer_of(params: list[Tensor], decay: float = DECAY) -> Lamb:
    made = Lamb([{"params": params, "weight_decay": decay}], lr=RATE, betas=BETAS, eps=EPS)
    begin_adaptive(made, params)
    return made


def by_hand(x: Tensor, gradients: list[Tensor]) -> Tensor:
    x, m, v = x.double(), 0.0, 0.0
    for count, gradient in enumerate(gradients, 1):
        g = gradient.double()
        m = BETAS[0] * m + (1 - BETAS[0]) * g
        v = BETAS[1] * v + (1 - BETAS[1]) * g**2
        u = m / (1 - BETAS[0] ** count) / ((v / (1 - BETAS[1] ** count)) ** 0.5 + EPS)
        u = u + DECAY * x
        x = x - RATE * min(float(x.norm()), LONGEST) / float(u.norm()) * u
    return x


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])  # the last is longer than a step counts
def test_its_steps_are_those_of_the_paper(size):
    generator = torch.Generator().manual_seed(0)
    param = torch.randn(20, 30, generator=generator) * size
    gradients = [torch.randn(20, 30, generator=generator) for _ in range(5)]
    wanted = by_hand(param, gradients)
    optimizer = optimizer_of([param])
    for gradient in gradients:
        param.grad = gradient.clone()
        optimizer.step()
    assert torch.allclose(param.double(), wanted, rtol=1e-5, atol=size * 1e-6)


def test_a_step_is_as_long_as_its_parameter_whatever_the_gradients_are():
    params = [torch.full((4,), length) for length in (0.5, 50.0)]
    before = [param.clone() for param in params]
    optimizer = optimizer_of(params, decay=0.0)
    for param, size in zip(params, (1e-4, 1e4), strict=True):
        param.grad = torch.full((4,), size)
    optimizer.step()
    for param, was in zip(params, before, strict=True):
        assert float((param - was).norm() / was.norm()) == pytest.approx(RATE, rel=1e-2)


def test_a_parameter_of_zeros_moves_as_with_adam_and_one_without_gradient_stays():
    zeros, still = torch.zeros(3), torch.ones(3)
    zeros.grad, still.grad = torch.full((3,), 2.0), torch.zeros(3)
    optimizer = optimizer_of([zeros, still], decay=0.0)
    optimizer.step()
    assert torch.allclose(zeros, torch.full((3,), -RATE))
    assert torch.equal(still, torch.ones(3))


def test_a_recipe_can_ask_for_it_and_a_newcomer_goes_on_as_a_veteran():
    options = Optimizer(kind="lamb", learning_rate=0.05, warmup_rounds=0, schedule="constant")
    recipe = make_recipe(optimizer=options)
    veteran, newcomer = (Learner(recipe, 0) for _ in range(2))
    assert isinstance(veteran.optimizer, Lamb)
    losses = [play_round(veteran, make_batch(number)) for number in range(8)]
    assert losses[-1] < losses[0]
    newcomer.load_state(veteran.round, veteran.state()[1])
    for learner in (veteran, newcomer):
        play_round(learner, make_batch(9))
    for mine, theirs in zip(newcomer.params, veteran.params, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-7)
