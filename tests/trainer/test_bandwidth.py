"""Whose claims about its link are believed, and who averages which part of the vector."""

from __future__ import annotations

import pytest

from trainer.swarm.bandwidth import LinkMeter, believed, share_out

MB = 10**6


def test_a_claim_counts_as_far_as_others_saw_it():
    claims = {"fast": 100.0, "liar": 1e9, "slow": 10.0}
    seen = {"fast": {"liar": 20.0, "slow": 9.0}, "slow": {"fast": 80.0, "liar": 10.0}}
    assert believed(claims, seen) == {"fast": 100.0, "liar": 40.0, "slow": 10.0}


def test_a_peers_own_word_about_itself_is_no_sight():
    claims = {"a": 50.0, "b": 40.0, "liar": 1e9}
    assert believed(claims, {"liar": {"liar": 1e9}})["liar"] == 50.0


def test_without_claims_nobody_has_a_speed():
    assert believed({"a": None, "b": None}, {}) == {"a": None, "b": None}


@pytest.mark.parametrize("speeds", [[1e9, 1e7, 1e7], [None, None, None]])
def test_all_elements_are_shared_out_and_senders_get_none(speeds):
    parts = share_out(1000, speeds, [False, True, False])
    assert sum(parts) == 1000
    assert parts[1] == 0


def test_a_slow_full_peer_gets_one_element_so_that_it_sends_and_receives_at_once():
    parts = share_out(100_000, [100.0, 50.0, 20.0, 10.0], [False] * 4)
    assert sum(parts) == 100_000
    assert parts[3] == 1
    assert parts[0] > parts[1] > parts[2] > 1


def test_a_meter_takes_a_faster_measurement_at_once_and_a_slower_one_slowly():
    meter = LinkMeter()
    assert meter.speed() is None
    meter.measured("up", 10, 1e-6)  # too little to tell
    assert meter.speed() is None
    meter.measured("up", MB, 1.0)
    meter.measured("down", 10 * MB, 1.0)
    assert meter.speed() == pytest.approx(8.0)
    meter.measured("up", 2 * MB, 1.0)
    assert meter.speed() == pytest.approx(16.0)
    meter.measured("up", MB, 1.0)
    assert 8.0 < meter.speed() < 16.0


def test_only_the_fastest_senders_travel_with_an_offer():
    meter = LinkMeter()
    for number in range(100):
        meter.saw(f"peer{number}", MB * (number + 1), 1.0)
    assert len(meter.seen()) == 32
    assert meter.seen()["peer99"] == 800.0
