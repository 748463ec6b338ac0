"""At the end a device makes a model of its owner's: better on their held-out texts, or none."""

from __future__ import annotations

import itertools

import pytest
from safetensors.torch import load_file

from tests.trainer.models import make_batch, make_recipe
from trainer.engine.learner import Learner
from trainer.engine.personal import STEPS, make_personal
from trainer.recipe import Choice

OWN = [make_batch(seed) for seed in range(4)]


def endless(batches, taken=None):
    for number in itertools.count():
        if taken is not None:
            taken.append(number)
        yield batches[number % len(batches)]


@pytest.mark.parametrize("strategy", ["dedloc", "fedavg", "diloco"])
def test_a_few_more_steps_make_a_model_that_is_better_for_its_owner(tmp_path, strategy):
    learner = Learner(make_recipe(strategy=Choice(name=strategy)), pad_id=0)
    for batch in OWN:  # what was left of the last round counts no more
        learner.learn(batch)
    anchor = [tensor.clone() for tensor in learner.anchor]
    made = make_personal(learner, endless(OWN), OWN, tmp_path, lambda: True)
    assert made is not None and made.path is not None
    assert made.own < made.shared
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert "stays on this computer" in made.in_words()
    kept = load_file(made.path)
    learner.begin()
    assert made.shared == learner.evaluate(OWN)[0]
    assert all(bool((a == b).all()) for a, b in zip(anchor, learner.anchor, strict=True))
    for name, param in zip(learner.names, learner.params, strict=True):
        param.data.copy_(kept[f"model.{name}"])
    assert made.own == learner.evaluate(OWN)[0]


def test_where_it_would_be_no_better_nothing_is_kept(tmp_path):
    learner = Learner(make_recipe(), pad_id=0)
    taken: list[int] = []
    learner.recipe = learner.recipe.model_copy(
        update={"optimizer": learner.recipe.optimizer.model_copy(update={"learning_rate": 1e6})}
    )
    made = make_personal(learner, endless(OWN, taken), OWN, tmp_path, lambda: True)
    assert made is not None and made.path is None and len(taken) < STEPS
    assert "made it no better" in made.in_words()
    assert list(tmp_path.iterdir()) == []


def test_a_stop_ends_it_and_keeps_nothing(tmp_path):
    learner = Learner(make_recipe(), pad_id=0)
    wanted = iter([True] * 20 + [False])
    assert make_personal(learner, endless(OWN), OWN, tmp_path, lambda: next(wanted)) is None
    assert list(tmp_path.iterdir()) == []
