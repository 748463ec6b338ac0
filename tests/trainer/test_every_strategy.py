"""What must hold for each strategy of the catalogue, new ones included: devices with one number."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from tests.trainer.averaging import end_round
from tests.trainer.devices import Q3, RATE, SGD, Device, known, optimum, play, swarm
from trainer import catalogue
from trainer.swarm.codec import Codec

NAMES = sorted(catalogue.plugins("strategies"))
LOCAL = [name for name in NAMES if catalogue.plugins("strategies")[name].local]
every_strategy = pytest.mark.parametrize("name", NAMES)
every_local_one = pytest.mark.parametrize("name", LOCAL)
# What makes a strategy's rounds a plain average of local training.
PLAIN = {**SGD, "outer_learning_rate": 1.0, "outer_momentum": 0.0, "mu": 0.0}


def made(name: str, x: float = 5.0, **more: Any) -> list[Device]:
    return swarm(name, Q3, x, **{**PLAIN, "weigh_by": "tokens", **more})


def fresh(name: str, **more: Any) -> list[Device]:
    """With the strategy's own outer steps."""
    return swarm(name, Q3, 5.0, **more)


def places(devices: Sequence[Device]) -> list[float]:
    return [device.x for device in devices]


@every_strategy
def test_one_step_of_all_their_data_is_centralised_gradient_descent(name: str):
    """Each with as much say as it has rows."""
    devices, rows, x = made(name), (10, 1, 1, 8), 5.0
    slope = sum(n * a for n, (a, _) in zip(rows, Q3, strict=True)) / sum(rows)
    for _ in range(20):
        play(devices, 1, rows)
        x -= RATE * slope * (x - optimum(Q3, rows))
        assert places(devices) == pytest.approx([x] * 4, abs=1e-10)


@every_local_one
def test_alone_it_is_local_training(name: str):
    (device, *_), x = made(name), 5.0
    for steps in (1, 7, 3, 20):
        play([device], steps)
        for _ in range(steps):
            x -= RATE * Q3[0][0] * (x - Q3[0][1])
        assert device.x == pytest.approx(x, abs=1e-10)


@every_local_one
@pytest.mark.parametrize("mu", [0.0, 2.0])
def test_the_first_round_of_equal_steps_is_fedavgs_or_fedproxs(name: str, mu: float):
    """FedNova with equal steps, SCAFFOLD that has nothing to correct yet."""
    with_pull = mu > 0 and "mu" in known(name, mu=mu)
    like = made("fedprox" if with_pull else "fedavg", mu=mu)
    devices = made(name, mu=mu)
    for one in (devices, like):
        play(one, 9, (3, 1, 4, 1))
    assert places(devices) == pytest.approx(places(like), abs=1e-12)


@pytest.mark.parametrize("local_momentum", [0.0, 0.9])
def test_with_equal_steps_fednova_is_fedavg_in_every_round(local_momentum: float):
    devices, like = (made(one, local_momentum=local_momentum) for one in ("fednova", "fedavg"))
    for _ in range(10):
        for one in (devices, like):
            play(one, 6, (3, 1, 4, 1))
        assert places(devices) == pytest.approx(places(like), abs=1e-12)


@every_strategy
def test_only_the_ratio_of_weights_counts(name: str):
    light, heavy = fresh(name), fresh(name)
    for steps in ((3, 1, 4, 1), (5, 9, 2, 6), (5, 3, 5, 8)):
        play(light, steps, (1, 2, 3, 4))
        play(heavy, steps, (7, 14, 21, 28))
        assert places(heavy) == pytest.approx(places(light), abs=1e-9)


@every_strategy
def test_the_order_of_the_members_does_not_count(name: str):
    devices, mixed, order = fresh(name), fresh(name), [2, 0, 3, 1]
    mixed = [mixed[place] for place in order]
    for steps in ((3, 1, 4, 1), (5, 9, 2, 6), (5, 3, 0, 8)):
        play(devices, steps)
        play(mixed, [steps[place] for place in order])
        assert places(mixed) == pytest.approx(places(devices), abs=1e-12)


@every_strategy
def test_all_members_end_each_round_with_the_same_bits_and_shared_state(name: str):
    choose, devices = random.Random(2), fresh(name)
    for _ in range(12):
        play(devices, [choose.randint(0, 5) for _ in devices[1:]] + [1])
        first = devices[0]
        for device in devices[1:]:
            assert device.x == first.x
            for kind, tensors in first.strategy.shared.items():
                assert torch.equal(device.strategy.shared[kind][0], tensors[0])


@every_strategy
def test_d01_a_device_without_data_gets_the_average_and_has_no_say(name: str):
    """Nor has the coordinator, which is a member of every round."""
    with_idle, without = fresh(name), fresh(name)
    without = without[1:]
    for steps in ((3, 1, 4), (5, 9, 2)):
        play(with_idle, (0, *steps))
        play(without, steps)
        assert places(with_idle) == pytest.approx([without[0].x] * 4, abs=1e-12)
    offer = with_idle[0].offer()
    assert offer.weight == 0 and not any(tensor.any() for tensor in offer.tensors)


@every_strategy
def test_d02_a_device_with_next_to_no_data_neither_breaks_nor_bends_a_round(name: str):
    devices = made(name)
    play(devices, (50, 50, 50, 1), (100, 100, 100, 1))
    others = made(name)[:3]
    play(others, 50, (100, 100, 100))
    most = max(abs(device.x - 5.0) for device in devices)
    assert 0 < abs(devices[0].x - others[0].x) < 0.01 * most


@every_local_one
def test_d04_ever_more_local_steps_stay_finite(name: str):
    for steps in (1, 4, 40, 400):
        devices = made(name, mu=1.0)
        for _ in range(30):
            play(devices, steps)
        assert all(abs(x) <= 5.0 for x in places(devices))


@every_strategy
def test_d05_a_refused_or_late_offer_has_no_trace_in_the_round(name: str):
    devices, others = fresh(name), fresh(name)
    for device in (*devices, *others):
        device.learn(5)
    stale = devices.pop(1)
    devices.insert(1, Device(name, (1e6, -1e6), 1e6, **known(name, **SGD)))
    devices[1].learn(1)
    end_round(devices, refused={1})
    end_round([*others[:1], *others[2:]])
    assert devices[0].x == pytest.approx(others[0].x, abs=1e-12)
    assert devices[1].x != devices[0].x  # whose anchor was another: it has to take the state
    stale.join(devices[0])
    devices[1] = stale
    play(devices, 5)
    assert len(set(places(devices))) == 1


@every_strategy
@pytest.mark.parametrize("codec", ["fp16", "int8"])
@pytest.mark.parametrize("scale", [1e6, 1e-9])
def test_d06_a_codec_neither_clips_nor_parts_the_members(name: str, codec: str, scale: float):
    problems = [(a, b * scale) for a, b in Q3]
    exact, rough = (swarm(name, problems, 5.0 * scale) for _ in range(2))
    for _ in range(3):
        for device in (*exact, *rough):
            device.learn(4)
        end_round(exact)
        end_round(rough, codec=Codec(codec))
        assert len(set(places(rough))) == 1
        assert rough[0].x == pytest.approx(exact[0].x, rel=1e-2)
