"""Whose claims about its link are believed, and who averages which part of the vector."""

from __future__ import annotations

import pytest

from trainer.swarm.bandwidth import LinkMeter, believed, share_out
from trainer.swarm.conclusion import reducing_speeds
from trainer.swarm.judgement import Judgement
from trainer.swarm.verdict import MOST_RECEIVED, Note
from trainer.wire import Role

MB = 10**6


def note(speed: float | None = None, **received: float) -> Note:
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
        received=received,
    )


def times(speeds: list[float], parts: list[int]) -> list[float]:
    """Of each member that carries something, per element of the vector and Mbit/s."""
    total, others = sum(parts), len(parts) - 2
    pairs = zip(speeds, parts, strict=True)
    return [(1 + others * part / total) / speed for speed, part in pairs if part]


def test_a_claim_counts_up_to_twice_what_all_others_together_received():
    notes = {
        "fast": note(100.0, liar=10.0, slow=9.0),
        "liar": note(1e9),
        "slow": note(10.0, fast=7.0, liar=8.0),
        "usual": note(15.0, fast=9.0, liar=7.0),
    }
    assert believed(notes) == {"fast": 32.0, "liar": 50.0, "slow": 10.0, "usual": 15.0}


def test_a_friend_of_a_liar_adds_no_more_than_what_is_usual_and_the_liars_own_word_nothing():
    notes = {"a": note(50.0, liar=5.0), "liar": note(1e9, liar=1e9), "friend": note(40.0, liar=1e9)}
    assert believed(notes)["liar"] == 2 * (5.0 + 50.0)


def test_whom_nobody_has_seen_carries_no_more_than_the_middle_of_the_claims():
    assert believed({"a": note(50.0), "b": note(40.0), "liar": note(1e9)})["liar"] == 50.0


def test_one_fast_link_among_slow_ones_comes_to_carry_what_it_can_within_a_few_rounds():
    """Each round the others receive what it sent in as long as the slowest took."""
    links, received, carried = [100.0, 20.0, 20.0, 20.0], [0.0] * 4, []
    for _ in range(4):
        notes = {str(n): note(speed) for n, speed in enumerate(links)}
        for name, n in notes.items():
            seen = {str(other): received[other] / 3 for other in range(4) if str(other) != name}
            notes[name] = n.model_copy(update={"received": seen})
        parts = share_out(1000, list(believed(notes).values()))
        carried.append(parts[0])
        slowest = max((1 + 2 * part / 1000) / link for part, link in zip(parts, links, strict=True))
        received = [(1 + 2 * part / 1000) / slowest for part in parts]
    assert carried[0] == 250 < carried[1] < carried[2] == carried[3] == 1000


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


def test_a_liar_that_claims_the_whole_average_gets_no_more_than_the_others():
    notes = {"a": note(50.0, liar=6.0), "b": note(50.0, liar=6.0), "c": note(50.0, liar=6.0)}
    notes["liar"] = note(1e9)
    speeds = list(believed(notes).values())
    assert share_out(1000, speeds)[3] == 250 < 990 < share_out(1000, [50.0, 50.0, 50.0, 1e9])[3]


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
        meter.received(f"Qm{'x' * 30}{number:014}", MB * (number + 1), 1.0)
    senders = meter.senders()
    assert len(senders) == MOST_RECEIVED
    assert senders[f"{99:012}"] == 800.0
    assert len(note(1.0, **senders).model_dump_json()) < 1200
