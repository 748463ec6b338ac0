"""In, with every strategy: a veteran's round, rate, moments and weights; also after a restart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.trainer.averaging import average, end_round
from tests.trainer.models import make_batch, make_recipe
from trainer import catalogue
from trainer.engine import checkpoint
from trainer.engine.coordinator import resume
from trainer.engine.learner import Learner
from trainer.engine.schedule import learning_rate
from trainer.recipe import Choice, Optimizer, Recipe

SGD = {"local_optimizer": "sgd", "local_momentum": 0.9}


def make(rate: float, name: str, **params: str | float) -> Recipe:
    options = Optimizer(learning_rate=rate, warmup_rounds=4, total_rounds=12, schedule="cosine")
    return make_recipe(strategy=Choice(name=name, params=params), optimizer=options)


RECIPES = {
    "dedloc": make(1e-2, "dedloc"),
    "fedavg": make(1e-2, "fedavg"),
    "fedavg-momentum": make(1e-1, "fedavg", **SGD, outer_momentum=0.5),
    "fedprox": make(1e-2, "fedprox", mu=0.1),
    "fednova": make(1e-1, "fednova", local_momentum=0.9),
    "scaffold": make(1e-1, "scaffold", local_momentum=0.9),
    "diloco": make(1e-2, "diloco"),
}
every_strategy = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())


def test_these_are_all_strategies():
    tested = {recipe.strategy.name for recipe in RECIPES.values()}
    assert tested == set(catalogue.plugins("strategies"))


def train(learner: Learner, seed: int, steps: int = 3) -> None:
    for number in range(steps):
        learner.learn(make_batch(1000 * seed + 100 * learner.round + number))


def play(learners: Sequence[Learner], watching: Sequence[Learner] = ()) -> None:
    """One round."""
    for seed, learner in enumerate(learners):
        train(learner, seed)
    end_round(learners, watching)


def join(veteran: Learner) -> Learner:
    """A peer that has begun somewhere else and takes the state."""
    newcomer = Learner(veteran.recipe, pad_id=0)
    with torch.no_grad():
        for tensor in (*newcomer.anchor, *newcomer.params):
            tensor.add_(1.0)
    metadata, tensors = veteran.state()
    newcomer.load_state(metadata["round"], tensors)
    return newcomer


def assert_in_step(one: Learner, other: Learner) -> None:
    assert one.round == other.round
    assert one.context.learning_rate == other.context.learning_rate
    assert one.strategy.shared.keys() == other.strategy.shared.keys()
    for mine, theirs in zip(one.state()[1], other.state()[1], strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8)
    for mine, theirs in zip(one.params, other.params, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8)


@every_strategy
def test_a_newcomer_is_in_step_with_a_veteran_and_stays_so(recipe: Recipe):
    veterans = [Learner(recipe, pad_id=0) for _ in range(2)]
    for _ in range(3):
        play(veterans)
    newcomer = join(veterans[0])
    assert newcomer.round == 3
    assert_in_step(newcomer, veterans[0])
    for _ in range(3):
        play([*veterans, newcomer])
        assert_in_step(newcomer, veterans[0])
        assert_in_step(veterans[1], veterans[0])


@every_strategy
def test_a_newcomer_learns_the_same_from_the_same_batches(recipe: Recipe):
    """But for the moments of DiLoCo's local steps, which are each peer's own."""
    veteran = Learner(recipe, pad_id=0)
    for _ in range(3):
        play([veteran])
    newcomer = join(veteran)
    if recipe.strategy.name == "diloco":
        for kind, tensors in veteran.strategy.own.items():
            for mine, theirs in zip(newcomer.strategy.own[kind], tensors, strict=True):
                assert theirs.any() and not mine.any()
                mine.copy_(theirs)
    for learner in (veteran, newcomer):
        train(learner, seed=7)
    assert veteran.learn(make_batch(5)) == pytest.approx(newcomer.learn(make_batch(5)), rel=1e-6)
    for mine, theirs in zip(*(average([one])[0] for one in (newcomer, veteran)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)  # sums in another order


@every_strategy
def test_a11_a_resumed_coordinator_goes_on_as_if_it_never_stopped(recipe: Recipe, tmp_path: Path):
    peers = [Learner(recipe, pad_id=0) for _ in range(2)]
    coordinator = Learner(recipe, pad_id=0)
    for _ in range(4):
        play(peers, [coordinator])
    coordinator.save(tmp_path / checkpoint.filename(4))
    resumed = Learner(recipe, pad_id=0)
    resume(resumed, tmp_path)
    assert_in_step(resumed, coordinator)
    for _ in range(3):
        play(peers, [coordinator, resumed])
    assert resumed.round == 7
    for mine, theirs in zip(resumed.state()[1], coordinator.state()[1], strict=True):
        assert torch.equal(mine, theirs)


@every_strategy
def test_the_rate_is_the_rounds_whatever_a_peer_has_been_through(recipe: Recipe):
    learner = Learner(recipe, pad_id=0)
    used: list[float] = []
    step = learner.optimizer.step

    def watched(*args: object) -> object:
        used.extend(group["lr"] for group in learner.optimizer.param_groups)
        return step(*args)

    learner.optimizer.step = watched  # type: ignore[method-assign]
    for number in range(5):
        expected = learning_rate(recipe.optimizer, number)
        train(learner, seed=1)
        learner.begin()  # the round is dropped and begun anew: its rate is the same
        play([learner])
        assert learner.round == number + 1
        assert set(used) == {expected}
        used.clear()
    learner.load_state(9, learner.state()[1])
    learner.load_state(9, learner.state()[1])
    play([learner])
    assert set(used) == {learning_rate(recipe.optimizer, 9)}


@every_strategy
def test_a_peer_learns_with_every_strategy(recipe: Recipe):
    peers = [Learner(recipe, pad_id=0) for _ in range(2)]
    held_out = [make_batch(seed) for seed in range(9_000, 9_004)]
    before, _ = peers[0].evaluate(held_out)
    for _ in range(12):
        play(peers)
    after, _ = peers[0].evaluate(held_out)
    assert after < 0.9 * before


def test_diloco_alone_with_plain_outer_steps_is_one_long_run_of_adamw():
    plain = Choice(name="diloco", params={"outer_learning_rate": 1.0, "outer_momentum": 0.0})
    constant = Optimizer(learning_rate=1e-2, warmup_rounds=0, schedule="constant")
    local = Learner(make_recipe(strategy=plain, optimizer=constant), pad_id=0)
    together = Learner(make_recipe(optimizer=constant), pad_id=0)
    for number in range(12):
        local.learn(make_batch(number))
        if number % 4 == 3:
            end_round([local])
        together.learn(make_batch(number))
        end_round([together])
    for mine, theirs in zip(local.anchor, together.anchor, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
