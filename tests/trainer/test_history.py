"""What is usual, what is a bad step, and how long somebody is set aside."""

from __future__ import annotations

import math

import pytest

from tests.trainer.models import make_batch, make_recipe, play_round
from trainer.engine.history import BARRED_ROUNDS, History, burst, exploded
from trainer.engine.learner import Learner
from trainer.swarm.verdict import Note, Verdict
from trainer.wire import Outcome, Role


def verdict(loss: float, norm: float = 1.0) -> Verdict:
    note = Note(
        round=1,
        role=Role.PEER,
        samples=10,
        tokens=100,
        loss_sum=100 * loss,
        weight=100.0,
        norm=norm,
        fingerprint=(),
    )
    return Verdict(1, Outcome.CLEAN, {"A": note})


def test_nothing_is_usual_before_five_rounds():
    history = History()
    for loss in (4.0, 3.0, 2.0, 3.0):
        history.add(verdict(loss, norm=loss))
    assert history.usual_loss() is None and history.usual_norm() is None
    history.add(verdict(90.0, norm=90.0))
    assert history.usual_loss() == pytest.approx(3.0)
    assert history.usual_norm() == pytest.approx(3.0)


def test_what_stays_different_becomes_usual():
    history = History()
    for loss in [2.0] * 9 + [8.0] * 5:
        history.add(verdict(loss))
    assert exploded(8.0, history.usual_loss()) == ""


@pytest.mark.parametrize(
    ("loss", "usual", "bad"),
    [
        (9.0, 2.0, True),
        (3.9, 2.0, False),
        (0.9, 0.01, False),
        (1.2, 0.01, True),
        (9.0, None, False),
        (None, 2.0, False),
    ],
)
def test_a_loss_explodes_against_the_usual_one(loss, usual, bad):
    assert bool(exploded(loss, usual)) == bad


def test_parameters_that_are_not_finite_or_burst_are_not_used():
    assert burst(math.nan, 10.0) and burst(math.inf, 10.0)
    assert "2,000 times as long" in burst(20_000.0, 10.0)
    assert burst(11.0, 10.0) == "" and burst(5.0, 0.0) == ""


def test_m4_the_kept_state_is_a_copy_that_later_steps_do_not_touch():
    learner, history = Learner(make_recipe(), pad_id=0), History()
    play_round(learner, make_batch(1))
    history.keep(learner)
    good = [tensor.clone() for tensor in learner.state()[1]]
    for number in range(3):
        play_round(learner, make_batch(number))
    learner.params[0].data.fill_(math.nan)
    learner.load_state(9, history.good_state)
    assert (history.good_round, learner.round) == (1, 9)
    for mine, kept in zip(learner.state()[1], good, strict=True):
        assert mine.equal(kept)


def test_a_peer_is_set_aside_for_some_rounds_and_then_heard_again():
    history = History()
    history.bar("X", "was not finite", 20)
    assert "was not finite" in history.barred(20 + BARRED_ROUNDS)["X"]
    assert history.barred(21 + BARRED_ROUNDS) == {}
