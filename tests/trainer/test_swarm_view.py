"""What one peer makes of the others' records, and which groups speak for the swarm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trainer.recipe import Round
from trainer.swarm.progress import MOST_AHEAD, Stage, Standing, counts, credible, look
from trainer.swarm.records import Records
from trainer.swarm.verdict import Note, Verdict, deviates
from trainer.wire import Outcome, Refusal, Role

NOW = 1_000_000.0
TIMING = Round(target_samples=1000, matchmaking_s=2)


def record(round_number: int = 7, **figures: Any) -> Standing:
    base = {"role": Role.PEER, "stage": Stage.READY, "started": NOW - 5, "at": NOW}
    return Standing(**{**base, "round": round_number, **figures})


def test_a10_peers_are_counted_apart_and_the_loss_is_weighted_over_one_round():
    records = {
        "A": record(samples=300, tokens=300, loss_sum=1200.0),
        "B": record(samples=100, tokens=100, loss_sum=200.0),
        "C": record(role=Role.SENDER),
        "M": record(role=Role.COORDINATOR),
        "D": record(4, samples=50, tokens=50, loss_sum=450.0),
        "E": record(samples=9000, at=NOW - 60),
    }
    live = {name: r for name, r in records.items() if credible(r, TIMING, NOW)}
    view = look(live, 7, {"M"}, NOW)
    assert (view.round, view.peers, view.coordinators) == (7, 3, 1)
    assert (view.samples, view.loss) == (400, 3.5)


def test_a10_nothing_is_divided_by_zero_when_nobody_has_samples():
    view = look({"A": record(), "B": record()}, 7, set(), NOW)
    assert (view.samples, view.loss) == (0, None)
    assert look({}, 7, set(), NOW).round is None


def test_samples_go_on_between_records_while_a_peer_trains():
    training = record(stage=Stage.TRAINING, samples=10, samples_per_s=4.0)
    assert training.samples_now(NOW + 2) == 18
    assert record(samples=10, samples_per_s=4.0).samples_now(NOW + 2) == 10


def test_an_empty_view_is_old_until_others_were_looked_for_again():
    records = Records(TIMING, {"M"})
    assert records.view(7, NOW).is_old
    records.take({"A": record().model_dump(mode="json")}, NOW)
    assert (records.view(7, NOW + 5).present, records.view(7, NOW + 5).is_old) == (1, False)
    woken = NOW + 40
    assert (records.view(7, woken).present, records.view(7, woken).is_old) == (0, True)
    records.take({}, woken, asked_at=NOW)  # asked for before it fell asleep
    assert records.view(7, woken).is_old
    records.take({}, woken)
    assert not records.view(7, woken).is_old


def test_only_coordinators_say_what_the_site_heard_and_that_is_kept_while_they_are_away():
    def told(**heard_at):
        return {name: record(heard_at=at).model_dump(mode="json") for name, at in heard_at.items()}

    records = Records(TIMING, {"M"})
    records.take(told(M=None, A=NOW), NOW)
    assert records.heard_at is None
    records.take(told(M=NOW - 30, A=NOW), NOW)
    assert records.heard_at == NOW - 30
    records.take(told(M=None), NOW)  # started anew, and has not asked yet
    records.take({}, NOW)
    assert records.heard_at == NOW - 30


def test_one_record_from_far_ahead_pulls_nobody_forward():
    crowd = {"A": record(7), "B": record(8), "X": record(10**6)}
    assert look(crowd, 7, set(), NOW).round == 8
    assert look({"X": record(8 + MOST_AHEAD)}, 7, set(), NOW).round is None
    assert look({"X": record(9)}, 7, set(), NOW).round == 9


def test_the_coordinator_is_believed_and_only_a_known_one():
    assert look({"M": record(50), "A": record(7), "B": record(7)}, 7, {"M"}, NOW).round == 50
    claims = record(50, role=Role.COORDINATOR)
    assert look({"X": claims, "A": record(7), "B": record(7)}, 7, {"M"}, NOW).round == 7


def test_a_sender_from_whom_nobody_can_take_a_state_says_no_round():
    crowd = {name: record(55, role=Role.SENDER) for name in "AB"}
    assert look({**crowd, "M": record(40)}, 55, {"M"}, NOW).round == 40
    assert look(crowd, 40, set(), NOW).round == 40  # as the coordinator sees them
    assert look(crowd, 55, {"M"}, NOW).round == 55  # it is away: they stay where they are
    assert look({**crowd, "C": record(55)}, 40, set(), NOW).round == 55


def test_a_record_with_more_samples_than_anybody_can_have_is_ignored():
    assert credible(record(samples=3000), TIMING, NOW)
    assert credible(record(samples=3001), TIMING, NOW) is None
    assert credible(record(samples=10**6, round_number=10**6), TIMING, NOW) is None
    assert credible(record(at=NOW + 100), TIMING, NOW) is None
    assert credible({"round": 7}, TIMING, NOW) is None


def test_a_record_cannot_claim_a_speed_that_ends_a_round_at_once():
    boast = credible(record(stage=Stage.TRAINING, samples_per_s=10.0**7), TIMING, NOW)
    assert boast is not None and boast.samples_per_s == 1000


def test_what_a_peer_may_offer_is_what_it_showed_and_what_its_rate_adds():
    shown = record(samples=100, samples_per_s=10.0, at=NOW - 3)
    assert shown.most_samples(NOW + 2, TIMING) == 100 + 2 * 10 * (5 + 2) + 250
    newcomer = record(samples=0, at=NOW - 1)  # its first record, and no rate yet
    assert newcomer.most_samples(NOW + 2, TIMING) == 3000
    assert record(samples=2900, samples_per_s=900.0).most_samples(NOW, TIMING) == 3000


def test_no_two_separate_groups_speak_for_the_same_swarm():
    live = {"M", "A", "B", "C"}
    for left in ({"A", "B"}, {"M", "A"}, {"A", "B", "C"}, {"C"}, {"M", "A", "B", "C"}):
        for known in ({"M"}, set()):
            assert not (counts(left, live, known) and counts(live - left, live, known))
    assert counts({"M", "A"}, live, {"M"})
    assert not counts({"A", "B", "C"}, live, {"M"})
    assert counts({"B", "C"}, {"A", "B", "C"}, {"M"})
    assert counts({"A", "B"}, {"A", "B", "C", "D"}, {"M"})
    assert not counts({"C", "D"}, {"A", "B", "C", "D"}, {"M"})
    assert counts({"A"}, {"A"}, set())


def test_newcomers_who_have_not_seen_everybody_end_no_second_round_beside_the_coordinators():
    assert counts({"C", "M"}, {"C", "M"}, {"M"})
    assert not counts({"A", "B"}, {"A", "B", "M"}, {"M"})


def note(**changes: Any) -> Note:
    base = {
        "round": 3,
        "role": Role.PEER,
        "samples": 10,
        "tokens": 100,
        "loss_sum": 200.0,
        "weight": 100.0,
        "norm": 1.0,
        "fingerprint": (1.0, -2.0, 10.0),
    }
    return Note(**{**base, **changes})


def test_a_verdict_counts_neither_empty_offers_nor_the_lost():
    verdict = Verdict(
        3,
        Outcome.PARTIAL,
        {"A": note(), "B": note(tokens=300, loss_sum=300.0), "C": note(), "M": note(tokens=0)},
        lost=("C",),
    )
    summary = verdict.summary(lost_before=["D", "C"])
    assert (summary.members, summary.samples, summary.tokens) == (2, 20, 400)
    assert summary.loss == pytest.approx(500 / 400)
    assert summary.lost == ("D", "C")
    left_out = replace(verdict, refused={"B": "was not finite"}).summary()
    assert (left_out.members, left_out.tokens) == (1, 100)
    assert left_out.refused == (Refusal(peer="B", reason="was not finite"),)
    assert not verdict.applies


def test_a_peer_whose_parameters_differ_notices_it():
    drifted = note(fingerprint=(1.0, -2.1, 10.0))
    near = note(fingerprint=(1.0, -2.001, 10.0))
    everybody = {"A": note(), "B": note(), "M": note()}
    assert deviates(drifted, {**everybody, "X": drifted}, frozenset())
    assert not deviates(near, {**everybody, "X": near}, frozenset())
    assert deviates(note(), {"A": note(), "M": drifted}, frozenset("M"))
    assert deviates(note(fingerprint=()), everybody, frozenset())
