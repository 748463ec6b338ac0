"""Which offers are refused, in which words, and that all members say the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.trainer.models import make_recipe
from trainer.recipe import Choice
from trainer.swarm.codec import Fault
from trainer.swarm.judgement import Judgement, Limits, agreed, judge, limits_of
from trainer.swarm.report import Failure, ReducerReport, sum_up
from trainer.swarm.verdict import Note
from trainer.wire import Role

LIMITS = Limits(most_samples=3000, sequence_length=32)
KNOWN = frozenset("M")
HONEST = {"A", "B", "C"}
LENGTHS = {"dedloc": 10.0, "fedavg": 10.0, "scaffold": 100.0}


def note(**changes: Any) -> dict[str, Any]:
    tokens = changes.get("tokens", 1000)
    base = {
        "round": 5,
        "role": Role.PEER,
        "samples": 200,
        "tokens": tokens,
        "loss_sum": 2000.0,
        "weight": float(tokens),
        "norm": 1.0,
        "fingerprint": (1.0, -2.0, 10.0),
    }
    return Note(**{**base, **changes}).model_dump(mode="json")


def coordinator(**changes: Any) -> dict[str, Any]:
    empty = {"role": Role.COORDINATOR, "samples": 0, "tokens": 0, "loss_sum": 0.0, "norm": 0.0}
    return note(**{**empty, **changes})


def verdict(liar: Any, **of_coordinator: Any) -> Judgement:
    gathered = {name: note() for name in HONEST}
    return judge({**gathered, "M": coordinator(**of_coordinator), "X": liar}, 5, LIMITS, KNOWN)


def test_honest_offers_are_all_taken_with_the_weight_of_their_notes():
    found = verdict(note(samples=100, tokens=500, norm=2.0))
    assert found.refused == {}
    assert found.weights() == {**dict.fromkeys(HONEST, 1000.0), "M": 0.0, "X": 500.0}


@pytest.mark.parametrize(
    ("liar", "words"),
    [
        (note(weight=1e6), "claimed a weight of 1,000,000 for 1,000 tokens"),
        (note(weight=0.0), "claimed a weight of 0 for 1,000 tokens"),
        (note(tokens=10**6), "claimed 1,000,000 tokens in 200 samples"),
        (note(steps=201), "claimed 201 steps with 200 samples"),
        (note(tokens=6400), "claimed 32 tokens in a sample, and 5 are usual"),
        (note(samples=10**6, tokens=10**6), "nobody can have more than 3,000 in a round"),
        (note(samples=2000, tokens=9000), "claimed 2,000 samples, and at most 450 were seen of it"),
        (note(norm=1e6), "had a norm of 1e+06, and 1 is usual"),
        (note(norm=1e31), "had a norm of 1e+31"),
        (note(round=4), "was of round 4 instead of 5: too late"),
        (note(fingerprint=(1.0, 2.0, 10.0)), "began from parameters that are not the swarm's"),
        ({**note(), "norm": float("nan")}, "came with a malformed note"),
        ({**note(), "weight": -1.0}, "came with a malformed note"),
        ("nonsense", "came with a malformed note"),
    ],
)
def test_a_lie_is_refused_in_words_and_no_other_offer_is(liar, words):
    found = verdict(liar, seen={"X": 450})
    assert found.refused.keys() == {"X"}
    assert words in found.refused["X"]
    assert found.weights() == {**dict.fromkeys(HONEST, 1000.0), "M": 0.0}


def test_without_a_coordinator_the_members_witness_each_other():
    claims = note(samples=2000, tokens=9000)
    witness = {"A": note(seen={"X": 450}), "B": note(seen={"X": 500}), "X": claims}
    assert judge(witness, 5, LIMITS, KNOWN).refused.keys() == {"X"}
    unseen = {"A": note(), "B": note(), "X": claims}
    assert judge(unseen, 5, LIMITS, KNOWN).refused == {}


def test_a_liar_cannot_get_others_refused():
    slander = note(seen=dict.fromkeys(HONEST, 0), barred=dict.fromkeys(HONEST, "is bad"))
    assert verdict(slander, seen=dict.fromkeys(HONEST, 450)).refused == {}
    group = {"A": note(), "B": note(seen={"A": 450}), "X": slander}
    assert judge(group, 5, LIMITS, KNOWN).refused == {}


def test_a_small_or_a_large_offer_may_be_longer_than_the_middle_one():
    assert verdict(note(samples=2, tokens=10, norm=90.0)).refused == {}
    assert verdict(note(samples=2, tokens=10, norm=110.0)).refused.keys() == {"X"}


def test_how_long_an_offer_may_be_is_the_strategys():
    assert [limits_of(make_recipe(strategy=Choice(name=name))).longest for name in LENGTHS] == [
        *LENGTHS.values()
    ]
    wide = replace(LIMITS, longest=100.0)
    offers = {**{name: note() for name in HONEST}, "M": coordinator(), "X": note(norm=50.0)}
    assert judge(offers, 5, LIMITS, KNOWN).refused.keys() == {"X"}
    assert judge(offers, 5, wide, KNOWN).refused == {}


def test_of_two_offers_the_longer_is_refused_only_if_it_is_known_what_is_usual():
    two = {"A": note(), "X": note(norm=1e6)}
    assert judge({**two, "M": coordinator()}, 5, LIMITS, KNOWN).refused == {}
    known = {**two, "M": coordinator(usual_norm=1.1)}
    assert judge(known, 5, LIMITS, KNOWN).refused.keys() == {"X"}
    alone = {"X": note(norm=1e6), "M": coordinator(usual_norm=1.1)}
    assert judge(alone, 5, LIMITS, KNOWN).refused.keys() == {"X"}


def test_an_offer_that_a_reducer_found_unusable_stays_out_on_the_coordinators_word():
    why = {"X": "is set aside until round 15"}
    assert verdict(note(), barred=why).refused == why
    gathered = {"A": note(barred=why), "B": note(barred=why), "C": note(), "X": note()}
    assert judge(gathered, 5, LIMITS, KNOWN).refused == why
    gathered["B"] = note()
    assert judge(gathered, 5, LIMITS, KNOWN).refused == {}


def test_what_all_agree_on_is_the_coordinators_figure_or_the_middle_one():
    read = {
        name: Note(**note(usual_loss=loss)) for name, loss in zip("ABX", [2, 3, 9], strict=True)
    }
    assert agreed(read, KNOWN, lambda n: n.usual_loss) == 3
    read["M"] = Note(**coordinator(usual_loss=2.5))
    assert agreed(read, KNOWN, lambda n: n.usual_loss) == 2.5
    assert agreed(read, KNOWN, lambda n: n.good_round) is None


def test_reducers_reports_say_who_went_silent_who_was_refused_and_whether_it_moved_anything():
    names, weights = ["A", "B", "X"], {"A": 1.0, "B": 1.0, "X": 1.0}
    refused = ReducerReport(failed={2: Failure(parts=0, fault=Fault.NOT_FINITE)})
    late = ReducerReport(failed={2: Failure(parts=3, fault=Fault.NOT_FINITE)})
    silent = ReducerReport(failed={1: Failure(parts=2)})
    why = {"X": "was not finite"}
    assert sum_up([refused, refused], names, weights) == (set(), why, False)
    assert sum_up([refused, late], names, weights) == (set(), why, True)
    assert sum_up([refused, ReducerReport()], names, weights) == (set(), why, True)
    assert sum_up([refused, ReducerReport()], names, {"A": 1.0, "B": 1.0}) == (set(), why, False)
    assert sum_up([silent, refused], names, weights)[:2] == ({"B"}, why)
