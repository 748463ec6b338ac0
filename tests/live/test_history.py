"""Curves: few points that look like all of them, and what is forgotten when."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.live import selectors, thinning
from webapp.live.minutes import MinuteMeans
from webapp.live.models import Event, Minute, RoundRecord
from webapp.live.reduce import reduced


def add_rounds(collaboration, losses, **fields):
    now = timezone.now()
    RoundRecord.objects.bulk_create(
        (
            RoundRecord(
                collaboration=collaboration,
                round=number,
                outcome="clean",
                members=1,
                samples=1,
                tokens=1,
                loss=loss,
                at=now,
                **fields,
            )
            for number, loss in enumerate(losses)
        ),
        batch_size=5000,
    )


def test_b14_a_million_points_are_reduced_and_their_three_spikes_stay():
    spikes = {123_456: 99.0, 500_001: -50.0, 999_998: 77.0}
    rng = random.Random(0)
    points = ((x, spikes.get(x, 5 + rng.random())) for x in range(1_000_000))
    kept = list(reduced(points, start=0, end=999_999, max_points=5000))
    assert len(kept) <= 5000
    assert set(spikes.items()) <= set(kept)
    assert (kept[0][0], kept[-1][0]) == (0, 999_999)
    assert [x for x, _ in kept] == sorted({x for x, _ in kept})


def test_b14_the_history_of_a_long_collaboration_is_short_and_keeps_the_spikes(collaboration):
    losses = [4.0] * 30_000
    losses[12_345], losses[20_001] = 90.0, 0.5
    add_rounds(collaboration, losses)
    found = selectors.history(collaboration, metric="loss", max_points=1000)
    assert (found["num_points"], found["x"]) == (30_000, "round")
    assert len(found["points"]) <= 1000
    assert [12_345, 90.0] in found["points"]
    assert [20_001, 0.5] in found["points"]


def test_a_part_of_the_history_is_shown_in_full_detail(collaboration):
    add_rounds(collaboration, range(5000))
    found = selectors.history(collaboration, start=100, end=199, max_points=1000)
    assert found["points"] == [[number, float(number)] for number in range(100, 200)]


def test_rounds_that_were_not_applied_and_losses_that_are_missing_are_no_points(collaboration):
    add_rounds(collaboration, [4.0, None, 3.0])
    collaboration.rounds.filter(round=2).update(outcome="partial")
    assert selectors.history(collaboration)["points"] == [[0, 4.0]]


def test_an_empty_history_is_an_empty_list(collaboration):
    for metric in selectors.METRICS:
        assert selectors.history(collaboration, metric=metric)["points"] == []


@pytest.mark.parametrize(
    "wrong", [{"metric": "mood"}, {"max_points": 0}, {"max_points": 10**9}, {"start": 2, "end": 1}]
)
def test_a_bad_request_is_answered_in_words(collaboration, wrong):
    with pytest.raises(ValueError, match=r"is not one of|must be|is after"):
        selectors.history(collaboration, **wrong)


def test_a_time_that_is_none_is_answered_in_words(collaboration):
    with pytest.raises(ValueError, match="no time"):
        selectors.history(collaboration, metric="peers", start=1e300)


def test_the_csv_holds_every_round_with_its_outcome(collaboration):
    add_rounds(collaboration, [4.0, 3.0])
    rows = list(selectors.history_rows(collaboration))
    assert [(row["round"], row["loss"], row["outcome"]) for row in rows] == [
        (0, 4.0, "clean"),
        (1, 3.0, "clean"),
    ]


def test_minutes_older_than_a_week_become_one_per_hour(collaboration):
    now = timezone.now().replace(minute=30, second=0, microsecond=0)
    old = (now - timedelta(days=8)).replace(minute=0)
    for minute in range(60):
        Minute.objects.create(
            collaboration=collaboration,
            at=old + timedelta(minutes=minute),
            peers=minute,
            samples_per_s=1,
        )
    Minute.objects.create(collaboration=collaboration, at=now, peers=7, samples_per_s=1)
    assert thinning.thin_minutes(now) == 59
    assert list(Minute.objects.values_list("at", "peers")) == [(old, 29.5), (now, 7.0)]
    assert thinning.thin_minutes(now) == 0
    assert Minute.objects.count() == 2


def test_old_rounds_are_thinned_but_the_curve_keeps_its_extremes(collaboration):
    losses = [4.0] * 25_000
    losses[11_111], losses[11_112] = 88.0, 0.25
    add_rounds(collaboration, losses)
    collaboration.rounds.filter(round=12_000).update(held_out_loss=3.0)
    gone = thinning.thin_rounds(collaboration)
    left = set(collaboration.rounds.values_list("round", flat=True))
    assert gone == 25_000 - len(left)
    assert len(left) <= thinning.MOST_ROUNDS
    assert {0, 11_111, 11_112, 12_000} <= left
    assert set(range(24_000, 25_000)) <= left


def test_a_collaboration_of_usual_length_is_not_thinned(collaboration):
    add_rounds(collaboration, [4.0] * 100)
    assert thinning.thin_rounds(collaboration) == 0


def test_old_events_are_forgotten(collaboration):
    now = timezone.now()
    for days in (1, 40):
        Event.objects.create(
            collaboration=collaboration, at=now - timedelta(days=days), what="left", text="left"
        )
    assert thinning.forget_events(now) == 1


def test_a_minute_is_the_mean_of_its_seconds_and_silence_is_told_once():
    means = MinuteMeans()
    for second in range(60):
        means.add("demo", 6000 + second, peers=second % 2, samples_per_s=10)
    assert means.finished(6059) == []
    [(slug, at, peers, samples_per_s)] = means.finished(6060)
    assert (slug, at.timestamp(), peers, samples_per_s) == ("demo", 6000, 0.5, 10)
    told = []
    for minute in (101, 102):
        means.add("demo", minute * 60, peers=0, samples_per_s=0)
        told += means.finished((minute + 1) * 60)
    assert [at.timestamp() for _, at, _, _ in told] == [6060]
