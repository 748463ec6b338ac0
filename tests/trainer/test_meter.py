"""Samples per second, as others are told them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from trainer.engine.status import METER_S, Meter
from trainer.swarm import clock


@dataclass
class Hand:
    """A clock that the test moves."""

    at: float = 1000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@pytest.fixture
def hand() -> Iterator[Hand]:
    given = Hand()
    before = clock.follow(given)
    yield given
    clock.follow(before)


def test_a_rate_is_of_the_last_seconds_only(hand: Hand) -> None:
    meter = Meter()
    for samples in [80] * 30 + [20] * int(METER_S):
        hand.sleep(1)
        meter.add(samples)

    assert meter.rate() == pytest.approx(20, rel=0.2)


def test_a_pause_does_not_count_as_slowness(hand: Hand) -> None:
    meter = Meter()
    hand.sleep(1)
    meter.add(50)
    hand.sleep(5)  # the pause
    meter.restart()
    hand.sleep(1)
    meter.add(50)

    assert meter.rate() == pytest.approx(50)


def test_who_has_done_nothing_for_long_has_no_rate(hand: Hand) -> None:
    meter = Meter()
    hand.sleep(1)
    meter.add(50)
    hand.sleep(10 * METER_S)

    assert meter.rate() == 0
