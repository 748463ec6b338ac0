"""Which donor a newcomer ends with: idle before busy, fast before slow."""

from __future__ import annotations

import asyncio
import math

import pytest

from trainer.swarm import donors
from trainer.swarm.donors import take_from_best

SIZE = 1000


@pytest.fixture(autouse=True)
def short_trials(monkeypatch):
    monkeypatch.setattr(donors, "TRIAL_S", 0.05)
    monkeypatch.setattr(donors, "LONG_S", 0.2)


class Donor:
    """Sends `rate` bytes a second while its stream is open; breaks off after `breaks_at` bytes."""

    def __init__(self, name, rate, *, others=0, breaks_at=math.inf, log=None) -> None:
        self.name, self.rate, self.others, self.breaks_at = name, rate, others, breaks_at
        self.received_bytes, self.missing_bytes = 0, SIZE
        self.is_open = False
        self.log = [] if log is None else log

    async def begin(self) -> int:
        self.log.append(self.name)
        if self.others is None:
            raise ConnectionError("gone")
        self.received_bytes, self.missing_bytes = 0, SIZE
        self.is_open = True
        return self.others

    async def finish(self) -> str:
        while self.missing_bytes > 0:
            await asyncio.sleep(0.005)
            assert self.is_open
            self.received_bytes += self.rate * 0.005
            self.missing_bytes -= self.rate * 0.005
            if self.received_bytes > self.breaks_at:
                raise ConnectionError("broke off")
        return self.name

    async def close(self) -> None:
        self.is_open = False


def take(*offered: Donor) -> str | None:
    found = asyncio.run(asyncio.wait_for(take_from_best(offered), 60))
    assert not any(donor.is_open for donor in offered)
    return found


SLOW, FAST, FASTEST = 200, 5_000, 50_000


def test_a_slow_donor_is_left_for_a_fast_one_whatever_their_order():
    assert take(Donor("slow", SLOW), Donor("fast", FAST)) == "fast"
    assert take(Donor("fast", FAST), Donor("slow", SLOW)) == "fast"
    slow = [Donor(f"slow {number}", SLOW) for number in range(3)]
    assert take(*slow, Donor("fast", FAST)) == "fast"


def test_one_that_sends_nothing_at_all_is_left_too():
    assert take(Donor("stuck", 0), Donor("fast", FAST)) == "fast"


def test_a_download_that_will_soon_be_done_calls_nobody_else():
    called = []
    assert take(Donor("fast", FASTEST, log=called), Donor("other", FAST, log=called)) == "fast"
    assert called == ["fast"]


def test_a_rival_that_would_not_be_through_sooner_is_let_go():
    called = []
    first, second = Donor("first", 2 * SLOW, log=called), Donor("second", SLOW, log=called)
    assert take(first, second) == "first"
    assert called == ["first", "second"]


def test_an_idle_donor_comes_before_a_busy_one_and_the_least_busy_of_those():
    busy = [Donor("three", FASTEST, others=3), Donor("one", FASTEST, others=1)]
    assert take(*busy, Donor("idle", FASTEST)) == "idle"
    called = []
    busy = [Donor(str(count), FASTEST, others=count, log=called) for count in (3, 1, 2)]
    assert take(*busy) == "1"
    assert called == ["3", "1", "2", "1"]


def test_a_busy_donor_is_still_a_better_one_than_a_slow_one():
    assert take(Donor("slow", SLOW), Donor("busy", FAST, others=1)) == "busy"


@pytest.mark.parametrize("fault", [{"others": None}, {"breaks_at": 100}])
def test_one_that_fails_costs_nothing_but_the_next_call(fault):
    assert take(Donor("bad", FAST, **fault), Donor("good", FAST)) == "good"
    assert take(Donor("bad", FAST, **fault)) is None
    assert take() is None


def test_a_rival_that_breaks_off_leaves_the_slow_one_going_on():
    slow = Donor("slow", 2 * SLOW)
    assert take(slow, Donor("bad", FAST, breaks_at=100), Donor("gone", 0, others=None)) == "slow"


def test_a_slow_one_is_called_again_when_the_faster_one_breaks_off():
    called = []
    slow = Donor("slow", 2 * SLOW, log=called)
    assert take(slow, Donor("bad", FAST, breaks_at=SIZE / 2, log=called)) == "slow"
    assert called == ["slow", "bad", "slow"]


def test_two_newcomers_and_two_donors_are_a_pair_each():
    """Donors count whom they serve from the first call on, so nobody has to be told."""
    serving = {"anna": 0, "bela": 0}

    class Shared(Donor):
        async def begin(self) -> int:
            self.others = serving[self.name]
            serving[self.name] += 1
            return await super().begin()

        async def close(self) -> None:
            if self.is_open:
                serving[self.name] -= 1
            await super().close()

    async def both() -> list[str]:
        offered = [[Shared("anna", FASTEST), Shared("bela", FASTEST)] for _ in range(2)]
        return await asyncio.gather(*(take_from_best(one) for one in offered))

    assert sorted(asyncio.run(both())) == ["anna", "bela"]
    assert serving == {"anna": 0, "bela": 0}


def test_a_newcomer_that_gives_up_leaves_no_stream_open():
    offered = [Donor("slow", SLOW), Donor("slower", SLOW / 2)]

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await take_from_best(offered)

    asyncio.run(give_up())
    assert not any(donor.is_open for donor in offered)
