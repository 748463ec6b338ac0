"""What a round did for the owner's held-out texts, measured on the same rows every time."""

from __future__ import annotations

import pytest
import torch

from tests.trainer.models import make_batch, make_recipe
from trainer.engine import own_check
from trainer.engine.learner import Learner
from trainer.engine.own_check import OwnCheck, OwnLosses
from trainer.recipe import Choice


def checked(strategy, batches, *, is_shared=False):
    params = {"local_optimizer": "sgd"} if strategy == "fedavg" else {}
    recipe = make_recipe(strategy=Choice(name=strategy, params=params))
    learner, told = Learner(recipe, pad_id=0), []
    return learner, told, OwnCheck(learner, batches, told.append, is_shared=is_shared)


@pytest.mark.parametrize("strategy", ["fedavg", "diloco"])
def test_local_strategies_tell_the_shared_model_before_and_after_and_ones_own(strategy):
    held_out = [make_batch(90), make_batch(91)]
    learner, told, check = checked(strategy, held_out)
    for number in range(3):
        before = learner.evaluate(held_out)[0]
        for seed in range(4):
            learner.learn(make_batch(10 * number + seed))
        alone = learner.evaluate(held_out)[0]
        check.training_ends()
        check.training_ends()  # its offer is repeated
        half = [tensor / 2 for tensor in learner.offer().tensors]  # another peer learned nothing
        learner.accept(half, [])
        assert check.round_ended(number) is None
        after = learner.evaluate(held_out)[0]
        tokens = sum(batch.tokens for batch in held_out)
        assert told[-1] == OwnLosses(number, before, alone, after, tokens)
        assert len({before, alone, after}) == 3


def test_with_one_step_for_all_there_is_no_model_of_ones_own():
    learner, told, check = checked("dedloc", [make_batch(90)], is_shared=True)
    learner.learn(make_batch(1))
    check.training_ends()
    learner.accept(learner.offer().tensors, [])
    assert check.round_ended(0) == told[0].after
    assert told[0].alone is None and told[0].after != told[0].before


def test_who_caught_up_compares_with_the_model_that_the_round_began_with():
    learner, told, check = checked("fedavg", [make_batch(90)])
    number, tensors = 7, [tensor + 0.01 for tensor in learner.state()[1]]
    learner.load_state(number, tensors)
    before = learner.evaluate([make_batch(90)])[0]
    learner.learn(make_batch(1))
    own = [param.clone() for param in learner.params]
    check.training_ends()
    assert all(torch.equal(a, b) for a, b in zip(own, learner.params, strict=True))
    learner.accept(learner.offer().tensors, [])
    check.round_ended(number)
    assert (told[0].round, told[0].before) == (number, before)


def test_a_slow_device_looks_at_fewer_rows_but_at_some(monkeypatch):
    monkeypatch.setattr(own_check, "MOST_S", 0.0)
    learner, told, check = checked("dedloc", [make_batch(seed) for seed in range(9)])
    learner.learn(make_batch(1))
    check.training_ends()
    learner.accept(learner.offer().tensors, [])
    check.round_ended(0)
    assert told[0].tokens == make_batch(0).tokens


def test_a_loss_that_is_no_number_is_not_reported():
    learner, told, check = checked("dedloc", [make_batch(90)], is_shared=True)
    learner.params[0].data.fill_(float("nan"))
    assert check.round_ended(0) is None and len(told) == 1


@pytest.mark.parametrize(
    ("alone", "words"),
    [
        (3.5, "alone: the shared one is better"),
        (3.2002, "alone: that is no worse"),
        (3.0, "alone: that is no worse"),
        (None, ""),
    ],
)
def test_the_owner_reads_whether_sharing_helped(alone, words):
    said = OwnLosses(4, 3.6, alone, 3.2, 100).in_words()
    assert said.startswith("loss 3.200 after round 4, 3.600 before")
    assert words in said and ("learned alone" in said) == (alone is not None)
