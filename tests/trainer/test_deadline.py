"""The measured deadline, and the records of other peers, without a network."""

from __future__ import annotations

import pytest

from trainer.recipe import Round
from trainer.swarm.deadline import LEAST_SLACK_S, Deadline, deadline_s
from trainer.swarm.progress import EXPIRES_S, Stage, Standing
from trainer.swarm.records import ASSUMED_S, Records, worth_storing
from trainer.wire import Role

NOW = 1000.0


def standing(number: int = 5, at: float = NOW, **changes) -> Standing:
    base = {"round": number, "role": Role.PEER, "stage": Stage.TRAINING, "started": at, "at": at}
    return Standing(**{**base, **changes})


def test_without_measurements_the_recipes_deadline_holds():
    assert deadline_s([], 60) is None
    assert deadline_s([[20.0], [20.0], []], 60) is None
    assert Deadline(60).seconds([]) == 60


def test_the_deadline_is_the_median_and_five_times_the_spread():
    rounds = [[90.0, 100.0, 160.0], [100.0, 130.0], [70.0, 100.0]]
    assert deadline_s(rounds, 1e6) == 100 + 100  # a spread of 10 is less slack than the median
    wide = [[10.0, 100.0, 190.0], [40.0, 160.0], [100.0]]
    assert deadline_s(wide, 1e6) == 100 + 5 * 60


def test_the_recipes_deadline_is_never_exceeded_and_short_rounds_keep_some_slack():
    assert deadline_s([[100.0]] * 4, 150) == 150
    assert deadline_s([[1.0]] * 4, 150) == 1 + LEAST_SLACK_S


def test_one_straggler_or_liar_in_many_does_not_move_the_deadline():
    honest = [[20.0, 21.0, 22.0, 21.0]] * 5
    mixed = [[20.0, 21.0, 22.0, 10**6]] * 5
    assert deadline_s(mixed, 1e9) == pytest.approx(deadline_s(honest, 1e9), rel=0.1)


def test_rounds_that_become_slower_for_good_get_their_time_within_a_few():
    deadline = Deadline(10_000)
    for _ in range(16):
        deadline.learn([20.0])
    needed, rounds = 90.0, 0
    while deadline.seconds([]) < needed:
        deadline.learn([min(needed, deadline.seconds([]))] * 2)  # the round ends by the deadline
        rounds += 1
        assert rounds <= 20


def test_a_newcomer_goes_by_the_middle_of_what_the_others_have_measured():
    newcomer = Deadline(60)
    assert newcomer.seconds([30.0, 32.0, 1.0]) == 30
    assert newcomer.seconds([10**6]) == 60
    for _ in range(3):
        newcomer.learn([12.0])
    assert newcomer.seconds([30.0]) == 24


def test_a_lost_peer_is_forgotten_until_it_says_something_new():
    records = Records(Round(), [])
    records.take({"a": standing()}, NOW)
    records.forget(["a"], NOW + 1)
    assert records.view(5, NOW + 1).peers == 0
    records.take({"a": standing()}, NOW + 2)
    assert records.view(5, NOW + 2).peers == 0
    records.take({"a": standing(at=NOW + 3)}, NOW + 3)
    assert records.view(5, NOW + 3).peers == 1
    assert records.view(5, NOW + 4 + EXPIRES_S).peers == 0


def test_members_of_a_round_are_taken_to_be_in_the_next_until_they_say_so():
    records = Records(Round(), [])
    old = {"a": standing(5), "b": standing(6)}
    records.take(old, NOW)
    records.assume(["a"], 6, NOW + 1)
    records.take(old, NOW + 2)
    assert set(records.view(6, NOW + 2).abreast) == {"a", "b"}
    records.take(old, NOW + 1 + ASSUMED_S)
    assert set(records.view(6, NOW + 1 + ASSUMED_S).abreast) == {"b"}


def test_a_record_is_stored_at_once_when_the_round_or_stage_is_new_and_seldom_otherwise():
    last = standing(samples=1)
    assert worth_storing(last, None)
    assert worth_storing(standing(6, NOW + 0.1, samples=1), last)
    assert worth_storing(standing(5, NOW + 0.1, samples=1, stage=Stage.READY), last)
    assert not worth_storing(standing(5, NOW + 0.5, samples=2), last)
    assert worth_storing(standing(5, NOW + 1, samples=2), last)
    assert not worth_storing(standing(5, NOW + 3, samples=1), last)
    assert worth_storing(standing(5, NOW + 4, samples=1), last)
