"""FedProx against its closed forms: gamma = a/(a + mu) (1 - (1 - r (a + mu))^K)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from pydantic import ValidationError

from tests.trainer.devices import RATE, SGD
from tests.trainer.models import make_batch, make_recipe
from tests.trainer.quadratic import (
    in_the_catalogue,
    make_learner,
    play,
    position,
    quadratic,
)
from trainer.engine.learner import Learner
from trainer.recipe import Choice
from trainer.strategies import fedprox

PROBLEMS = ((1, 0), (4, 1))  # (a, b)


@pytest.fixture
def quadratics() -> Iterator[None]:
    with in_the_catalogue():
        yield


@pytest.mark.parametrize(
    ("steps", "fixed_point"),
    [((1, 1), 0.8), ((10, 10), 0.69863245), ((50, 50), 0.61660673), ((5, 50), 0.79621391)],
)
def test_the_known_fixed_points_stay_where_they_are(quadratics, steps, fixed_point):
    """Rows of a micro-batch change nothing: the pull is per step, however many are summed up."""
    peers = [make_learner("fedprox", fixed_point, **SGD, mu=1) for _ in PROBLEMS]
    play(peers, PROBLEMS, steps, rows=(1, 3))
    assert position(peers[0]) == position(peers[1]) == pytest.approx(fixed_point, abs=1e-8)


def test_the_pull_is_outside_of_the_momentum(quadratics):
    options = {**SGD, "rate": 0.001, "local_momentum": 0.9, "mu": 1}
    peers = [make_learner("fedprox", 0.96383093, **options) for _ in range(2)]
    play(peers, ((1, 0), (1, 1)), (5, 50))
    assert position(peers[0]) == pytest.approx(0.96383093, abs=1e-8)


def test_a_pull_never_goes_beyond_the_anchor(quadratics):
    peer = make_learner("fedprox", 3.0, **SGD, mu=1000)
    x = 3.0
    for _ in range(5):
        peer.learn(quadratic(4, 1))
        x = 3 - RATE * 4 * (x - 1)
        assert position(peer) == pytest.approx(x, abs=1e-12)


def test_rounds_lead_to_the_fixed_point_from_the_known_first_step(quadratics):
    peers = [make_learner("fedprox", 3.0, **SGD, mu=1) for _ in PROBLEMS]
    play(peers, PROBLEMS, (5, 50))
    assert position(peers[0]) == pytest.approx(1.8928679531, abs=1e-10)
    for _ in range(5):
        play(peers, PROBLEMS, (5, 50))
    left = [
        1 - a / (a + 1) * (1 - (1 - RATE * (a + 1)) ** k)
        for (a, _), k in zip(PROBLEMS, (5, 50), strict=True)
    ]
    away = (sum(left) / 2) ** 6 * (3 - 0.79621391)
    assert position(peers[0]) == pytest.approx(0.79621391 + away, abs=1e-8)


def test_d04_the_stronger_the_pull_the_nearer_to_the_anchor(quadratics):
    """Also that the anchor does not move with the parameters: then every mu would do the same."""
    distances = []
    for mu in (0, 1, 10):
        peer = make_learner("fedprox", 3.0, **SGD, mu=mu)
        for _ in range(50):
            peer.learn(quadratic(4, 1, rows=2))
        shrinkage = 4 / (4 + mu) * (1 - (1 - RATE * (4 + mu)) ** 50)
        assert position(peer) == pytest.approx(3 - 2 * shrinkage, abs=1e-12)
        distances.append(3.0 - position(peer))
    assert distances[0] > distances[1] > distances[2] > 0


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_without_a_pull_it_is_fedavg_to_the_last_bit(optimizer: str):
    ends = []
    for name, more in (("fedavg", {}), ("fedprox", {"mu": 0.0})):
        choice = Choice(name=name, params={"local_optimizer": optimizer, **more})
        learner = Learner(make_recipe(strategy=choice), pad_id=0)
        for number in range(6):
            learner.learn(make_batch(number))
        ends.append([param.detach().clone() for param in learner.params])
    assert all(torch.equal(one, other) for one, other in zip(*ends, strict=True))


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_language_model_is_held_back_whatever_the_optimizer(optimizer: str):
    distances = []
    for mu in (0.0, 1.0, 10.0):
        choice = Choice(name="fedprox", params={"local_optimizer": optimizer, "mu": mu})
        learner = Learner(make_recipe(strategy=choice), pad_id=0)
        for number in range(20):
            learner.learn(make_batch(number))
        pairs = zip(learner.params, learner.anchor, strict=True)
        distances.append(sum(float((p - a).detach().square().sum()) for p, a in pairs))
    assert distances[0] > distances[1] > distances[2] > 0


@pytest.mark.parametrize("mu", [-1, float("nan"), 1e9])
def test_a_pull_that_makes_no_sense_is_refused(mu: float):
    with pytest.raises(ValidationError, match="mu"):
        fedprox.Params(mu=mu)
