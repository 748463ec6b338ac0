"""Whose claims about its link are believed, and who averages which part of the vector."""

from __future__ import annotations

import pytest

from trainer.swarm.bandwidth import LinkMeter, believed, share_out
from trainer.swarm.conclusion import reducing_speeds
from trainer.swarm.judgement import Judgement
from trainer.swarm.verdict import MOST_SIGHTS, Note
from trainer.wire import Role

MB = 10**6


def note(speed: float | None = None, **sights: float) -> Note:
    return Note(
        round=1,
        role=Role.PEER,
        samples=1,
        tokens=1,
        loss_sum=1.0,
        weight=1.0,
        norm=1.0,
        fingerprint=(1.0,),
        link_mbit_s=speed,
        sights=sights,
    )


def times(speeds: list[float], parts: list[int]) -> list[float]:
    """Of each member that carries something, per element of the vector and Mbit/s."""
    total, others = sum(parts), len(parts) - 2
    pairs = zip(speeds, parts, strict=True)
    return [(1 + others * part / total) / speed for speed, part in pairs if part]


def test_a_claim_counts_as_far_as_others_saw_it():
    notes = {
        "fast": note(100.0, liar=20.0, slow=9.0),
        "liar": note(1e9),
        "slow": note(10.0, fast=80.0, liar=10.0),
        "idle": note(50.0, liar=25.0, fast=70.0),
    }
    # the second highest sight of each, twice; nobody has seen "idle"
    assert believed(notes) == {"fast": 100.0, "liar": 40.0, "slow": 10.0, "idle": 50.0}


def test_one_friend_cannot_vouch_for_a_liar_whom_somebody_else_has_seen():
    notes = {"a": note(50.0, liar=10.0), "liar": note(1e9), "friend": note(50.0, liar=1e9)}
    assert believed(notes)["liar"] == 20.0


def test_a_peers_own_word_about_itself_is_no_sight():
    notes = {"a": note(50.0), "b": note(40.0), "liar": note(1e9, liar=1e9)}
    assert believed(notes)["liar"] == 50.0


def test_who_makes_no_claim_counts_as_the_mean_of_the_others():
    assert believed({"a": note(), "b": note()}) == {"a": None, "b": None}
    assert share_out(999, [None, None, None]) == [333, 333, 333]
    assert share_out(10_000, [30.0, None, 30.0]) == share_out(10_000, [30.0, 30.0, 30.0])


def test_shares_follow_the_speeds_so_that_all_who_carry_something_take_as_long():
    speeds = [100.0, 70.0, 60.0, 10.0]
    parts = share_out(1_000_000, speeds)
    assert sum(parts) == 1_000_000
    assert parts[0] > parts[1] > parts[2] > 0 == parts[3]  # without a share it is slow enough
    taken = times(speeds, parts)
    assert max(taken) / min(taken) < 1.001
    assert max(taken) < max(times(speeds, [1, 1, 1, 1])) / 5


def test_a_liar_that_claims_the_whole_average_gets_what_others_have_seen_it_carry():
    notes = {
        "coordinator": note(50.0, liar=20.0, a=48.0, b=51.0),
        "a": note(50.0, coordinator=49.0, b=50.0),
        "b": note(50.0, coordinator=50.0, a=50.0),
        "liar": note(1e9),
    }
    speeds = list(believed(notes).values())
    assert share_out(1000, speeds)[3] < 250 < 990 < share_out(1000, [50.0, 50.0, 50.0, 1e9])[3]


def test_senders_and_the_refused_carry_nothing_and_each_member_finds_the_same():
    notes = {"a": note(40.0), "b": note(40.0), "c": note(40.0), "d": note(90.0)}
    judgement, names = Judgement(notes, {"c": "was not finite"}), list(notes)
    speeds = reducing_speeds(judgement, [False, False, False, True], names, None)
    assert speeds == [40.0, 40.0, 0.0, 0.0]
    assert share_out(1001, speeds) == [501, 500, 0, 0]
    only_refused = reducing_speeds(judgement, [True, True, False, True], names, None)
    assert share_out(10, only_refused) == [0, 0, 10, 0]  # else nobody would average at all


def test_in_a_star_the_coordinator_carries_all_whatever_its_link():
    notes = {"a": note(1000.0), "coordinator": note(1.0), "b": note(1000.0)}
    names = list(notes)
    alone = ("coordinator",)
    speeds = reducing_speeds(Judgement(notes, {}), [False] * 3, names, alone)
    assert share_out(77, speeds) == [0, 77, 0]
    without = reducing_speeds(Judgement(notes, {}), [False] * 2, ["a", "b"], alone)
    assert without == [0.0, 0.0]


@pytest.mark.parametrize("speeds", [[10.0, 1000.0], [None, None], [None, 3.0]])
def test_of_two_members_both_carry_half_because_both_move_as_much_anyway(speeds):
    assert share_out(100, speeds) == [50, 50]


def test_a_meter_takes_a_faster_measurement_at_once_and_a_slower_one_slowly():
    meter = LinkMeter()
    meter.measured("up", 10, 1e-6)  # too little to tell
    meter.measured("up", MB, 1.0)
    assert meter.speed() is None
    meter.measured("down", 10 * MB, 1.0)
    assert meter.speed() == 8.0
    meter.measured("up", 2 * MB, 1.0)
    assert meter.speed() == 16.0
    meter.measured("up", MB, 1.0)
    assert 8.0 < meter.speed() < 16.0


def test_an_average_that_waited_for_others_makes_no_link_slower():
    meter = LinkMeter()
    meter.measured("up", 10 * MB, 1.0)
    meter.measured("down", 10 * MB, 1.0)
    for _ in range(10):
        meter.measured("up", MB, 1.0, at_least=True)
    assert meter.speed() == 80.0
    meter.measured("up", 20 * MB, 1.0, at_least=True)
    meter.measured("down", 20 * MB, 1.0, at_least=True)
    assert meter.speed() == 160.0


def test_only_the_fastest_senders_travel_with_an_offer_and_the_note_stays_short():
    meter = LinkMeter()
    for number in range(100):
        meter.saw(f"Qm{'x' * 30}{number:014}", MB * (number + 1), 1.0)
    sights = meter.sights()
    assert len(sights) == MOST_SIGHTS
    assert sights[f"{99:012}"] == 800.0
    assert len(note(1.0, **sights).model_dump_json()) < 1200
