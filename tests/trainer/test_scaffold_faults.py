"""SCAFFOLD when members vanish, come late, leave and return: c stays the mean of all c_i."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.trainer.averaging import end_round
from tests.trainer.devices import Q3, SGD, Device, Problem, imbalance, optimum, play, swarm

OPTIMUM = 0.2
STEPS = 10


def go_on(devices: list[Device], rounds: int = 40) -> float:
    for _ in range(rounds):
        play(devices, STEPS)
    assert len({device.x for device in devices}) == 1
    return devices[0].x


def control(device: Device) -> float:
    return float(device.strategy.shared["control"][0])


def newcomer(problem: Problem, donor: Device) -> Device:
    device = Device("scaffold", problem, -7.0, **SGD)
    device.join(donor)
    return device


def test_an_offer_that_was_refused_is_not_committed():
    devices = swarm("scaffold", Q3, 5.0)
    for number in range(6):
        play(devices, STEPS, refused={2} if number == 2 else ())
        assert abs(imbalance(devices)) < 1e-12
    assert go_on(devices) == pytest.approx(OPTIMUM, abs=1e-9)


def test_committed_all_the_same_it_would_be_a_bias_that_nothing_but_new_books_ends():
    """Of a c_i that is written too early; the law is (c - mean c_i) / mean a."""
    devices = swarm("scaffold", Q3, 5.0)
    for number in range(24):
        for device in devices:
            device.learn(STEPS)
        careless = devices[2].strategy
        too_early = careless._mean_gradient(devices[2].context)
        end_round(devices, refused={2} if number == 3 else ())
        careless.control = too_early
    assert imbalance(devices) == pytest.approx(0.19856466, abs=1e-7)
    assert devices[0].x == pytest.approx(0.09409885, abs=1e-7)
    assert devices[0].x - OPTIMUM == pytest.approx(-imbalance(devices) / 1.875, abs=1e-6)
    assert go_on(devices) == pytest.approx(OPTIMUM, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_offers_that_are_lost_at_random_leave_no_bias(seed: int):
    choose = random.Random(seed)
    devices = swarm("scaffold", Q3, 5.0)
    for _ in range(60):
        play(devices, STEPS, refused=[n for n in range(3) if choose.random() < 0.2])
    assert go_on(devices) == pytest.approx(OPTIMUM, abs=1e-9)


def test_a_member_that_dies_half_way_has_no_share_in_c():
    """Its drift is in the average all the same: c must not take that."""
    devices = swarm("scaffold", Q3, 5.0)
    for _ in range(4):
        play(devices, STEPS)
    before = control(devices[0])
    play(devices, STEPS, lost={1})
    dead = devices.pop(1)
    assert control(devices[0]) == before
    play(devices, STEPS)  # new books: c is the mean of the living
    assert abs(imbalance(devices)) < 1e-12
    rest = [device.problem for device in devices]
    assert go_on(devices, 60) == pytest.approx(optimum(rest), abs=1e-9)
    dead.join(devices[0])
    assert go_on([*devices, dead], 60) == pytest.approx(OPTIMUM, abs=1e-9)


@pytest.mark.parametrize("rounds", [2, 20])
def test_a_late_joiner_takes_c_and_corrects_nothing_before_its_first_round(rounds: int):
    devices = swarm("scaffold", Q3[:3], 5.0)
    for _ in range(rounds):
        play(devices, STEPS)
    late = newcomer(Q3[3], devices[0])
    plain = Device("fedavg", Q3[3], late.x, **SGD)
    for device in (late, plain):
        device.learn(STEPS)
    assert float(late.params[0]) == float(plain.params[0])
    late.begin()
    devices.append(late)
    play(devices, STEPS)
    assert abs(imbalance(devices)) < 1e-9
    assert go_on(devices) == pytest.approx(OPTIMUM, abs=1e-9)


@pytest.mark.parametrize("rounds", [2, 20])
def test_who_leaves_for_good_is_out_of_the_books_two_rounds_later(rounds: int):
    """Else c would keep its part: 0.51 off after leaving at round 2, 0.20 at round 20."""
    devices = swarm("scaffold", Q3, 5.0)
    for _ in range(rounds):
        play(devices, STEPS)
    devices.pop(0)
    play(devices, STEPS)
    play(devices, STEPS)
    assert abs(imbalance(devices)) < 1e-12
    rest = [device.problem for device in devices]
    assert go_on(devices, 60) == pytest.approx(optimum(rest), abs=1e-9)


def test_who_returns_does_so_as_a_newcomer():
    devices = swarm("scaffold", Q3, 5.0)
    for _ in range(3):
        play(devices, STEPS)
    away = devices.pop(3)
    for _ in range(3):
        play(devices, STEPS)
    away.join(devices[0])
    devices.append(away)
    play(devices, STEPS)
    play(devices, STEPS)
    assert abs(imbalance(devices)) < 1e-9
    assert go_on(devices) == pytest.approx(OPTIMUM, abs=1e-9)


def test_who_was_away_for_one_round_only_is_noticed_too():
    """It has had no time to be missed: that it comes anew says that its booking is void."""
    devices = swarm("scaffold", Q3, 5.0)
    play(devices, STEPS)
    late = devices.pop(0)
    play(devices, STEPS)
    late.join(devices[0])
    assert go_on([late, *devices]) == pytest.approx(OPTIMUM, abs=1e-9)


def test_the_last_one_here_trains_on_by_itself():
    devices = swarm("scaffold", Q3, 5.0)
    for _ in range(3):
        play(devices, STEPS)
    assert go_on(devices[2:3], 60) == pytest.approx(-2.0, abs=1e-9)


def test_after_a_restart_of_all_or_an_undone_round_new_books_begin():
    devices = swarm("scaffold", Q3, 5.0)
    for _ in range(5):
        play(devices, STEPS)
    stored = newcomer(Q3[0], devices[0])
    play(devices, STEPS)
    for device in devices:
        device.join(stored)
    play(devices, STEPS)
    assert control(devices[0]) == control(stored)
    play(devices, STEPS)
    assert abs(imbalance(devices)) < 1e-9
    assert go_on(devices) == pytest.approx(OPTIMUM, abs=1e-9)


def test_who_comes_and_goes_all_the_time_leaves_no_trace():
    choose = random.Random(1)
    devices, away = swarm("scaffold", Q3, 5.0), []
    for _ in range(60):
        if away and choose.random() < 0.5:
            back = away.pop()
            back.join(devices[0])
            devices.append(back)
        elif len(devices) > 1 and choose.random() < 0.5:
            away.append(devices.pop(choose.randrange(len(devices))))
        play(devices, [choose.randint(1, 10) for _ in devices])
    for back in away:
        back.join(devices[0])
    assert go_on([*devices, *away], 60) == pytest.approx(OPTIMUM, abs=1e-9)


@pytest.mark.parametrize("claim", [-3.0, 7.0, 1e30])
def test_d05_a_false_booking_delays_corrections_and_falsifies_nothing(claim: float):
    devices = swarm("scaffold", Q3, 5.0)
    liar = devices[1]
    honest: Any = liar.offer
    liar.offer = lambda: replace(honest(), note={"booked": claim})  # type: ignore[method-assign]
    assert go_on(devices, 120) == pytest.approx(OPTIMUM, abs=1e-6)


def test_books_are_renewed_now_and_then_and_nothing_is_felt_of_it():
    devices = swarm("scaffold", Q3, 5.0)
    found = []
    for _ in range(60):
        play(devices, STEPS)
        found.append((devices[0].strategy.booked, abs(devices[0].x - OPTIMUM)))
    assert [number for number, (booked, _) in enumerate(found) if not booked] == [24, 49]
    assert max(away for _, away in found[40:]) < 1e-9
