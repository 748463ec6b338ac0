"""Local steps and outer steps against closed forms: quadratics f_i(x) = a_i/2 (x - b_i)^2."""

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
from trainer.strategies import diloco, fedavg

CURVATURES, OPTIMA = (1, 4), (0, 1)
PROBLEMS = ((1, 0), (4, 1))


@pytest.fixture(autouse=True)
def quadratics() -> Iterator[None]:
    with in_the_catalogue():
        yield


def shrinkage(curvature: float, steps: int) -> float:
    """How much of the way to its own optimum a peer goes in so many steps."""
    return 1 - (1 - RATE * curvature) ** steps


@pytest.mark.parametrize(("strategy", "momentum"), [("fedavg", 0.0), ("diloco", 0.4)])
@pytest.mark.parametrize(
    ("steps", "rounds", "fixed_point"),
    [
        ((1, 1), 170, 0.8),
        ((10, 10), 40, 0.68987827),
        ((50, 50), 40, 0.52000236),
        ((5, 50), 40, 0.81551282),
    ],
)
def test_local_steps_end_at_the_known_fixed_point(strategy, momentum, steps, rounds, fixed_point):
    peers = [make_learner(strategy, 3.0, **SGD, outer_momentum=momentum) for _ in CURVATURES]
    for _ in range(rounds):
        play(peers, PROBLEMS, steps)
    assert position(peers[0]) == position(peers[1]) == pytest.approx(fixed_point, abs=1e-8)


def test_one_round_of_fedavg_moves_as_far_as_the_closed_form_says():
    peers = [make_learner("fedavg", 3.0, **SGD) for _ in CURVATURES]
    for peer, steps, a, b in zip(peers, (5, 50), CURVATURES, OPTIMA, strict=True):
        for _ in range(steps):
            peer.learn(quadratic(a, b))
    assert position(peers[0]) == pytest.approx(2.3213428125, abs=1e-10)
    assert position(peers[1]) == pytest.approx(1.0000285450, abs=1e-10)
    end_round(peers)
    assert position(peers[0]) == pytest.approx(1.6606856787, abs=1e-10)


@pytest.mark.parametrize("strategy", ["fedavg", "diloco"])
def test_outer_momentum_follows_its_recursion(strategy):
    """FedAvgM: v = b v + g, x = x - r v. DiLoCo (Nesterov): x = x - r (g + b v)."""
    rate, momentum, steps = 0.7, 0.9, (5, 50)
    outer = {"outer_learning_rate": rate, "outer_momentum": momentum}
    peers = [make_learner(strategy, 3.0, **SGD, **outer) for _ in CURVATURES]
    known = torch.tensor([3.0])
    nesterov = strategy == "diloco"
    reference = torch.optim.SGD([known], lr=rate, momentum=momentum, nesterov=nesterov)
    x, v = 3.0, 0.0
    for _ in range(8):
        gradient = sum(
            shrinkage(a, k) * (x - b) / 2 for a, b, k in zip(CURVATURES, OPTIMA, steps, strict=True)
        )
        v = momentum * v + gradient
        x -= rate * (gradient + momentum * v if nesterov else v)
        known.grad = torch.tensor([gradient])
        reference.step()
        play(peers, PROBLEMS, steps)
        assert position(peers[0]) == pytest.approx(x, abs=1e-10)
        assert position(peers[0]) == pytest.approx(float(known), abs=1e-10)


@pytest.mark.parametrize(
    ("weigh_by", "weights"), [("tokens", (6, 20)), ("samples", (6, 20)), ("equal", (1, 1))]
)
def test_an_offer_weighs_what_the_recipe_says(weigh_by, weights):
    steps, rows = (2, 5), (3, 4)
    peers = [
        make_learner("fedavg", 3.0, local_optimizer="sgd", weigh_by=weigh_by) for _ in CURVATURES
    ]
    play(peers, PROBLEMS, steps, rows)
    ends = [
        b + (1 - RATE * a) ** k * (3 - b) for a, b, k in zip(CURVATURES, OPTIMA, steps, strict=True)
    ]
    expected = sum(w * y for w, y in zip(weights, ends, strict=True)) / sum(weights)
    assert position(peers[0]) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("strategy", ["fedavg", "diloco"])
def test_a_peer_without_work_offers_nothing_and_moves_with_the_others(strategy):
    worker, idle = (make_learner(strategy, 3.0, **SGD) for _ in range(2))
    for _ in range(5):
        worker.learn(quadratic(1, 0))
    offer = idle.offer()
    assert offer is not None and offer.weight == 0 and not offer.tensors[0].any()
    end_round([worker, idle])
    assert position(idle) == position(worker) != 3.0


def test_fedavg_alone_is_local_training():
    peer = make_learner("fedavg", 3.0, **SGD)
    for _ in range(4):
        for _ in range(10):
            peer.learn(quadratic(4, 1))
        end_round([peer])
    assert position(peer) == pytest.approx(1 + (1 - RATE * 4) ** 40 * 2, abs=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_local_momentum_is_that_of_sgd_and_begins_anew_each_round(momentum):
    peer = make_learner("fedavg", 3.0, **SGD, local_momentum=momentum)
    x = 3.0
    for _ in range(3):
        speed = 0.0
        for _ in range(7):
            peer.learn(quadratic(4, 1))
            speed = momentum * speed + 4 * (x - 1)
            x -= RATE * speed
        end_round([peer])
        assert position(peer) == pytest.approx(x, abs=1e-10)


def test_a_round_that_is_dropped_goes_back_to_the_anchor_and_keeps_dilocos_moments():
    peer = make_learner("diloco", 3.0)
    peer.learn(quadratic(4, 1))
    moments = [tensor.clone() for tensor in peer.strategy.own["exp_avg"]]
    assert moments[0].any() and position(peer) != 3.0
    peer.begin()
    assert position(peer) == 3.0
    assert torch.equal(peer.strategy.own["exp_avg"][0], moments[0])
    assert float(peer.strategy.own["step"][0]) == 1


def test_a_gradient_that_is_not_finite_takes_no_local_step():
    peer = make_learner("diloco", 3.0)
    peer.params[0].register_hook(lambda gradient: gradient * float("inf"))
    assert peer.learn(quadratic(4, 1)) is None
    assert position(peer) == 3.0
    assert not peer.strategy.own["exp_avg"][0].any() and float(peer.strategy.own["step"][0]) == 0


def test_a_peer_is_full_after_its_most_local_steps_and_not_in_the_next_round():
    limited, free = make_learner("fedavg", most_local_steps=3), make_learner("fedavg")
    for peer in (limited, free):
        for _ in range(3):
            assert not peer.full
            peer.learn(quadratic(1, 0))
    assert limited.full and not free.full
    end_round([limited])
    assert not limited.full


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"local_momentum": 0.9}, "choose sgd as local_optimizer"),
        ({"local_optimizer": "lamb"}, "'adamw' or 'sgd'"),
        ({"weigh_by": "votes"}, "'tokens', 'samples' or 'equal'"),
        ({"most_local_steps": -1}, "greater than or equal to 0"),
        ({"outer_momentum": 1}, "less than 1"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused_by_name(params, complaint):
    for plugin in (fedavg.PLUGIN, diloco.PLUGIN):
        with pytest.raises(ValidationError, match=complaint):
            plugin.Params(**params)
