"""FedNova against its closed forms, and the mistakes that other implementations of it make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from pydantic import ValidationError

from tests.trainer.averaging import end_round
from tests.trainer.devices import RATE, SGD
from tests.trainer.quadratic import (
    in_the_catalogue,
    make_learner,
    play,
    position,
    quadratic,
)
from trainer.engine.learner import Learner
from trainer.strategies import fednova
from trainer.strategies.fednova import path_length

Q1 = ((1, 0), (4, 1))  # (a, b): the optimum is 0.8
Q2 = ((1, 0), (1, 1))  # 0.5


@pytest.fixture(autouse=True)
def quadratics() -> Iterator[None]:
    with in_the_catalogue():
        yield


def pair(x: float, strategy: str = "fednova", **params: float | str) -> list[Learner]:
    return [make_learner(strategy, x, **{**SGD, **params}) for _ in range(2)]


def recursion(steps: int, momentum: float, pull: float) -> float:
    counter = length = 0.0
    for _ in range(steps):
        counter = momentum * counter + 1
        length = (1 - pull) * length + counter
    return length


@pytest.mark.parametrize(
    ("steps", "momentum", "pull", "length"),
    [
        (50, 0.0, 0.0, 50.0),
        (5, 0.9, 0.0, 13.1441),
        (20, 0.9, 0.0, 120.941899),
        (20, 0.5, 0.0, 38.0000019),
        (20, 0.0, 0.05, 12.830282),
        (20, 0.0, 0.25, 3.987315),
        (10, 0.9, 0.05, 35.242082),  # and not 41.505239, which counts before it shrinks
        (0, 0.9, 0.05, 0.0),
    ],
)
def test_the_length_of_a_path_is_the_known_one(steps, momentum, pull, length):
    assert path_length(steps, momentum, pull) == pytest.approx(length, rel=1e-7)
    assert recursion(steps, momentum, pull) == pytest.approx(length, rel=1e-7)


@pytest.mark.parametrize(("momentum", "pull"), [(0.9, 0.1), (0.9, 1.0), (0.0, 1.0), (0.99, 0.02)])
def test_the_closed_form_is_the_recursion_also_where_its_terms_cancel(momentum, pull):
    for steps in (1, 2, 33):
        expected = recursion(steps, momentum, pull)
        assert path_length(steps, momentum, pull) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("momentum", "mu"), [(0.0, 0.0), (0.9, 0.0), (0.0, 1.0), (0.9, 1.0), (0.5, 5.0)]
)
def test_a_path_of_equal_gradients_leads_as_far_as_its_length_says(momentum, mu):
    """So the normalised change of a device is a mean of its gradients, whatever its optimizer."""
    peer = make_learner("fednova", 3.0, local_momentum=momentum, mu=mu)
    peer.params[0].register_hook(lambda gradient: torch.full_like(gradient, 2.0))
    for _ in range(12):
        peer.learn(quadratic(1, 0))
    length = path_length(12, momentum, RATE * mu)
    assert 3.0 - position(peer) == pytest.approx(RATE * 2.0 * length, rel=1e-12)
    assert float(peer.offer().tensors[0]) == pytest.approx(RATE * 2.0, rel=1e-12)


@pytest.mark.parametrize(
    ("steps", "fixed_point"),
    [((1, 1), 0.8), ((10, 10), 0.68987827), ((50, 50), 0.52000236), ((5, 50), 0.30653944)],
)
def test_the_known_fixed_points_stay_where_they_are(steps, fixed_point):
    peers = pair(fixed_point)
    play(peers, Q1, steps)
    assert position(peers[0]) == position(peers[1]) == pytest.approx(fixed_point, abs=1e-8)


@pytest.mark.parametrize(
    ("problems", "rate", "more", "fixed_point"),
    [
        (Q1, 0.005, {}, 0.71980020),
        (Q1, 0.0005, {}, 0.79226992),  # the limit is the optimum; FedAvg's is 0.97560976
        (Q2, 0.01, {}, 0.44627371),
        (Q2, 0.001, {}, 0.49439823),
        (Q2, 0.001, {"local_momentum": 0.9}, 0.46515789),
        (Q2, 0.001, {"local_momentum": 0.9, "mu": 1}, 0.46529893),
    ],
)
def test_the_bias_of_unequal_steps_goes_away_as_the_rate_does(problems, rate, more, fixed_point):
    """And not before: at a rate of 0.05 FedNova is further from the optimum than FedAvg."""
    peers = pair(fixed_point, rate=rate, **more)
    play(peers, problems, (5, 50))
    assert position(peers[0]) == pytest.approx(fixed_point, abs=1e-8)


def test_rounds_lead_to_the_fixed_point_from_the_known_first_step():
    peers = pair(3.0)
    play(peers, Q1, (5, 50))
    assert position(peers[0]) == pytest.approx(0.5837005842, abs=1e-10)
    for _ in range(14):
        play(peers, Q1, (5, 50))
    assert position(peers[0]) == position(peers[1]) == pytest.approx(0.30653944, abs=1e-8)


def test_the_step_is_the_mean_length_and_not_the_harmonic_one():
    """27.5 for 5 and 50 steps; with weights renormalised by their scale it would be 9.09."""
    peers = pair(3.0)
    for peer, steps in zip(peers, (5, 50), strict=True):
        peer.params[0].register_hook(lambda gradient: torch.full_like(gradient, 1.0))
        for _ in range(steps):
            peer.learn(quadratic(1, 0))
    end_round(peers)
    assert (3.0 - position(peers[0])) / RATE == pytest.approx(27.5, rel=1e-12)


def test_momentum_begins_anew_in_each_round():
    """Else the length of the second round's path would be another one."""
    peer = make_learner("fednova", 3.0, **SGD, local_momentum=0.9)
    peer.params[0].register_hook(lambda gradient: torch.full_like(gradient, 1.0))
    for number in (1, 2):
        for _ in range(5):
            peer.learn(quadratic(1, 0))
        end_round([peer])
        assert position(peer) == pytest.approx(3.0 - number * RATE * 13.1441, rel=1e-12)


def test_the_survivors_of_a_round_are_averaged_without_a_bias():
    """Whose offer was refused has no share in the direction, nor in the length of the step."""
    peers = [make_learner("fednova", 3.0, **SGD) for _ in range(3)]
    for peer, (a, b), steps in zip(peers, (*Q1, (50, 9)), (5, 50, 9), strict=True):
        for _ in range(steps):
            peer.learn(quadratic(a, b))
    end_round(peers, refused={2})
    assert [position(peer) for peer in peers] == pytest.approx([0.5837005842] * 3, abs=1e-10)


def test_a_device_without_a_step_moves_with_the_others():
    worker, idle = pair(3.0)
    for _ in range(5):
        worker.learn(quadratic(1, 0))
    end_round([worker, idle])
    assert position(idle) == position(worker) == pytest.approx(2.3213428125, abs=1e-10)


def test_adamw_is_refused_with_the_reason():
    with pytest.raises(ValidationError, match=r"adamw divides every gradient.*choose sgd"):
        fednova.Params(local_optimizer="adamw")
    assert fednova.Params().local_optimizer == "sgd"
