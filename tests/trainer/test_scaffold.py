"""SCAFFOLD against its closed forms, in peace: devices with problems a/2 (x - b)^2."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from tests.trainer.devices import (
    Q1,
    Q3,
    RATE,
    Problem,
    imbalance,
    optimum,
    play,
    swarm,
)
from trainer.strategies import scaffold


@pytest.mark.parametrize(
    ("steps", "rounds"), [((1, 1), 165), ((10, 10), 25), ((50, 50), 71), ((5, 50), 28)]
)
def test_it_reaches_the_optimum_in_the_known_number_of_rounds(steps, rounds):
    """It is still 1e-9 away after so many. FedAvg ends at 0.68987827 with 10 steps each, and
    FedNova at 0.30653944 with 5 and 50.
    """
    devices = swarm("scaffold", Q1, 5.0)
    needed = 0
    for number in range(rounds + 5):
        play(devices, steps)
        if abs(devices[0].x - 0.8) > 1e-9:
            needed = number + 1
    assert devices[0].x == devices[1].x == pytest.approx(0.8, abs=1e-9)
    assert needed == rounds


def paper(problems: Sequence[Problem], x: float, steps: int, rounds: int) -> list[float]:
    """Algorithm 1 with option II, c_i' = c_i - c + (x - y) / (K r), and everybody in each round."""
    c, own, found = 0.0, [0.0] * len(problems), []
    for _ in range(rounds):
        ends = []
        for (a, b), mine in zip(problems, own, strict=True):
            y = x
            for _ in range(steps):
                y -= RATE * (a * (y - b) - mine + c)
            ends.append(y)
        new = [m - c + (x - y) / (steps * RATE) for m, y in zip(own, ends, strict=True)]
        x = sum(ends) / len(ends)
        c += sum(n - m for n, m in zip(new, own, strict=True)) / len(own)
        own = new
        found.append(x)
    return found


def test_each_round_is_the_papers():
    devices = swarm("scaffold", Q3, 5.0)
    for expected in paper(Q3, 5.0, 10, 15):
        play(devices, 10)
        assert [device.x for device in devices] == pytest.approx([expected] * 4, abs=1e-12)
        assert abs(imbalance(devices)) < 1e-12


def test_with_momentum_it_reaches_the_optimum_too():
    """With the paper's (anchor - y) / (K r) in place of the gradients it diverges at round 22."""
    devices = swarm("scaffold", Q3, 5.0, rate=0.02, local_momentum=0.9)
    for _ in range(400):
        play(devices, 10)
    assert devices[0].x == pytest.approx(0.2, abs=1e-9)


def test_the_first_round_is_fedavgs():
    devices, plain = swarm("scaffold", Q3, 5.0), swarm("fedavg", Q3, 5.0)
    play(devices, (3, 50, 1, 7))
    play(plain, (3, 50, 1, 7))
    assert [device.x for device in devices] == [device.x for device in plain]


@pytest.mark.parametrize("outer", [0.5, 1.0])
def test_alone_it_is_local_training(outer: float):
    (device,) = swarm("scaffold", [(4, 1)], 3.0, outer_learning_rate=outer)
    x = 3.0
    for _ in range(5):
        play([device], 6)
        x += outer * (1 - (1 - RATE * 4) ** 6) * (1 - x)
        assert device.x == pytest.approx(x, abs=1e-12)


def test_what_counts_more_in_the_average_counts_as_much_in_the_corrections():
    """By samples to the optimum of all samples; corrections that count all alike end at 0.2."""
    rows = (10, 1, 1, 8)
    devices = swarm("scaffold", Q3, 5.0, weigh_by="samples")
    for _ in range(60):
        play(devices, 10, rows)
    assert devices[0].x == pytest.approx(optimum(Q3, rows), abs=1e-9)
    assert devices[0].x == pytest.approx(0.6, abs=1e-9)


def test_c_stays_the_mean_while_weights_and_steps_change_every_round():
    choose = random.Random(3)
    devices = swarm("scaffold", Q3, 5.0, weigh_by="tokens")
    for _ in range(40):
        steps = [choose.randint(0, 6) for _ in devices]
        steps[choose.randrange(4)] = 6
        play(devices, steps, [choose.randint(1, 5) for _ in devices])
        if any(device.strategy.booked for device in devices):  # not just renewed
            assert abs(imbalance(devices)) < 1e-6
    for _ in range(60):
        play(devices, 4)
    assert devices[0].x == pytest.approx(0.2, abs=1e-9)


@pytest.mark.parametrize("present", [3, 2, 1])
def test_who_has_nothing_to_offer_in_a_round_stays_in_the_books(present: int):
    """Averaging the c_i of those alone who offer would end up to 0.9 away."""
    choose = random.Random(present)
    devices = swarm("scaffold", Q3, 5.0)
    play(devices, 10)
    for _ in range(400):
        working = choose.sample(range(4), present)
        play(devices, [10 if place in working else 0 for place in range(4)])
        assert abs(imbalance(devices)) < 1e-6
    assert [device.x for device in devices] == pytest.approx([0.2] * 4, abs=1e-7)


@pytest.mark.parametrize("rate", [0.0, 0.05])
def test_rows_are_not_steps(rate: float):
    """A gradient is a sum over tokens, and c_i a mean over steps, also where the rate is 0."""
    devices = swarm("scaffold", Q1, 5.0, rate=rate)
    play(devices, 3, (1, 7))
    assert float(devices[1].strategy.control[0]) == pytest.approx(
        sum(4 * (1 - rate * 4) ** k * 4 for k in range(3)) / 3, abs=1e-12
    )
    play(devices, 3, (1, 7))
    assert abs(imbalance(devices)) < 1e-12


def test_adamw_is_refused_with_the_reason():
    with pytest.raises(ValidationError, match=r"cancel out.*adamw's is not: choose sgd"):
        scaffold.Params(local_optimizer="adamw")
    assert scaffold.Params().local_optimizer == "sgd"
