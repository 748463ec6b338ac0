"""Whose turn a round is: the draw, what all agree on, and what happens to who comes uninvited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hivemind.utils import MSGPackSerializer
from pydantic import ValidationError

from tests.trainer.models import make_recipe
from tests.trainer.test_judgement import KNOWN, LIMITS, coordinator, note
from trainer import catalogue
from trainer.recipe import MOST_CHOSEN, Choice, Participation
from trainer.swarm.conclusion import Course, conclude, void
from trainer.swarm.judgement import Limits, judge, limits_of
from trainer.swarm.report import Failure, ReducerReport
from trainer.swarm.selection import Brought, draw, in_force, next_chosen
from trainer.swarm.verdict import MOST_BROUGHT, MOST_RECEIVED, MOST_WITNESSED, Note
from trainer.wire import Outcome

NAMES = [f"peer-{number:02}" for number in range(10)]
ROUNDS = 3000
HALF = Participation(chosen_by="lot", share=0.5)


def recipe(rules: Participation = HALF, seed: int = 0):
    return make_recipe(participation=rules, seed=seed)


def shares(rules: Participation, brought: Mapping[str, float]) -> dict[str, float]:
    """How often each is chosen."""
    drawn = Counter(n for r in range(ROUNDS) for n in draw(recipe(rules), r, NAMES, brought))
    return {name: drawn[name] / ROUNDS for name in NAMES}


def notes(**lists: Any) -> dict[str, Note]:
    made = {n: note(chosen=chosen) for n, chosen in lists.items() if n not in KNOWN}
    made |= {n: coordinator(chosen=chosen) for n, chosen in lists.items() if n in KNOWN}
    return {name: Note(**content) for name, content in made.items()}


def test_a_draw_follows_from_seed_round_and_names_whatever_their_order():
    first = draw(recipe(), 7, NAMES, {})
    assert len(first) == 5 and list(first) == sorted(first)
    assert draw(recipe(), 7, NAMES[::-1], {}) == first
    assert draw(recipe(), 8, NAMES, {}) != first != draw(recipe(seed=1), 7, NAMES, {})


def test_one_member_more_or_less_changes_one_place():
    """So that peers whose views differ for a moment mostly agree all the same."""
    for number in range(50):
        more = set(draw(recipe(), number, NAMES, {}))
        less = set(draw(recipe(), number, NAMES[:-1], {}))
        assert len(more ^ less) <= 2


def test_by_lot_all_are_chosen_equally_often():
    for share in shares(HALF, {}).values():
        assert share == pytest.approx(0.5, abs=4 * (0.25 / ROUNDS) ** 0.5)


def test_by_speed_the_first_is_drawn_in_proportion_to_what_devices_brought():
    brought = {NAMES[0]: 4.0, NAMES[1]: 0.0}
    one = Participation(chosen_by="speed", share=0.1)
    found, total = shares(one, brought), 4.0 + 0.05 + 8
    assert found[NAMES[0]] == pytest.approx(4 / total, abs=0.04)
    assert 0 < found[NAMES[1]] < 0.02  # who was away is tried again now and then
    assert found[NAMES[5]] == pytest.approx(1 / total, abs=0.02)


@pytest.mark.parametrize(
    ("rules", "members", "chosen"),
    [
        ({"share": 0.25}, 8, 2),
        ({"share": 0.3}, 10, 3),
        ({"share": 0.3}, 11, 4),
        ({"share": 0.01}, 5, 1),
        ({"share": 0.1, "least_members": 3}, 10, 3),
        ({"share": 0.1, "least_members": 3}, 2, 2),
        ({"share": 0.9}, 500, MOST_CHOSEN),
    ],
)
def test_as_many_are_chosen_as_the_recipe_says_and_a_round_needs(rules, members, chosen):
    assert Participation(chosen_by="lot", **rules).number_chosen(members) == chosen


def test_over_selection_ends_a_round_with_the_first_of_those_chosen():
    rules = Participation(chosen_by="lot", share=0.5, done_share=0.75, least_members=2)
    assert [rules.number_done(chosen) for chosen in (1, 3, 4, 8)] == [2, 3, 3, 6]


def test_a_share_of_devices_that_are_all_chosen_makes_no_sense():
    with pytest.raises(ValidationError, match="set it to 1 or chosen_by to lot or speed"):
        Participation(share=0.5)


def test_a_round_cannot_end_with_the_first_that_are_done_where_none_ever_is():
    rules = Participation(done_share=0.5)
    for name in ("dedloc", "fedavg"):
        with pytest.raises(ValueError, match="without a limit none ever is"):
            catalogue.check(make_recipe(strategy=Choice(name=name), participation=rules))
    for limit in ({"most_local_steps": 5}, {"most_training_s": 5}):
        strategy = Choice(name="fedavg", params=limit)
        catalogue.check(make_recipe(strategy=strategy, participation=rules))


def test_the_next_draw_is_among_the_members_of_this_average_without_the_coordinator():
    said = {**{name: Note(**note()) for name in NAMES}, "M": Note(**coordinator())}
    assert next_chosen(recipe(), 5, said, KNOWN) == draw(recipe(), 6, NAMES, {})


def test_by_speed_all_draw_by_the_coordinators_note_and_by_lot_without_it():
    fast = Participation(chosen_by="speed", share=0.2)
    said = {name: Note(**note(brought={NAMES[3]: 1e6})) for name in NAMES}
    assert next_chosen(recipe(fast), 5, said, KNOWN) == draw(recipe(fast), 6, NAMES, {})
    told = {**said, "M": Note(**coordinator(brought={NAMES[4]: 1e6}))}
    assert NAMES[4] in next_chosen(recipe(fast), 5, told, KNOWN)


@pytest.mark.parametrize(
    ("lists", "found"),
    [
        ({"A": ("A",), "B": ("A",), "M": ("B",)}, ("B",)),
        ({"A": ("A",), "B": ("A",), "M": ()}, ()),
        ({"A": ("A",), "B": ("A",), "C": None, "M": None}, ("A",)),
        ({"A": ("A",), "B": ("B",)}, ()),
        ({"A": None, "B": None, "X": ("X",)}, ()),
        ({"A": None, "B": None}, ()),
    ],
)
def test_the_coordinators_list_counts_or_that_of_most_and_in_doubt_all_may_train(lists, found):
    assert in_force(notes(**lists), KNOWN) == found


def test_an_offer_of_one_that_was_not_chosen_is_refused_with_the_reason_and_no_other():
    gathered = {name: note(chosen=("A", "B")) for name in "AB"}
    gathered |= {"X": note(chosen=("X",)), "I": coordinator(chosen=("A", "B"))}
    found = judge(gathered, 5, LIMITS, KNOWN)
    assert found.refused == {"X": "came in a round for which other devices were chosen"}
    assert judge({**gathered, "X": note()}, 5, LIMITS, KNOWN).refused.keys() == {"X"}
    of_coordinator = {"M": coordinator(chosen=("X",)), "A": note(), "X": note()}
    assert judge(of_coordinator, 5, LIMITS, KNOWN).refused.keys() == {"A"}


def test_a_liar_keeps_nobody_out_by_a_list_of_its_own():
    gathered = {"A": note(), "B": note(), "X": note(chosen=("X",))}
    assert judge(gathered, 5, LIMITS, KNOWN).refused == {}


def test_a_round_with_fewer_results_than_it_needs_is_void_and_says_how_many_it_had():
    needs = limits_of(make_recipe(participation=Participation(least_members=3)))
    limits = Limits(3000, 32, least_members=needs.least_members)
    gathered = {"A": note(), "B": note(), "M": coordinator()}
    two, speeds = judge(gathered, 5, limits, KNOWN), [None, None, None]
    nothing = void(two, speeds, limits)
    assert nothing is not None and nothing["outcome"] is Outcome.FAILED
    assert nothing["reason"] == "a round needs the results of 3 devices and had 2"
    assert void(judge({**gathered, "C": note()}, 5, limits, KNOWN), speeds, limits) is None
    refused = judge({**gathered, "X": note(weight=1e6)}, 5, limits, KNOWN)
    assert void(refused, speeds, limits)["refused"].keys() == {"X"}  # which has to be told


@pytest.mark.parametrize(("least", "applies"), [(1, True), (2, True), (3, False)])
def test_a_round_that_lost_a_device_it_needs_while_averaging_is_not_applied(least, applies):
    limits = Limits(3000, 32, least_members=least)
    names = ["A", "B", "C", "M"]
    found = judge({**{n: note() for n in "ABC"}, "M": coordinator()}, 5, limits, KNOWN)
    assert void(found, [None] * 4, limits) is None
    course = Course([ReducerReport(failed={1: Failure(parts=0)})])
    fields = conclude("A", names, found, [0.5, 0, 0, 0.5], course, limits)
    assert fields["lost"] == ("B",)
    assert fields["outcome"] is (Outcome.CLEAN if applies else Outcome.FAILED)
    assert ("needs the results of 3 devices and had 2" in fields["reason"]) is not applies


def test_the_fullest_note_goes_through_the_pipe_of_the_averaging_process():
    """Which 8 KB pass, and 16 KB break (hivemind 1.1.12)."""
    names = [f"QmXyZabcdef{number:03}"[-12:] for number in range(100)]
    full = note(
        seen=dict.fromkeys(names[:MOST_WITNESSED], 10**6),
        received=dict.fromkeys(names[:MOST_RECEIVED], 1234.567),
        brought=dict.fromkeys(names[:MOST_BROUGHT], 0.123),
        chosen=names[:MOST_CHOSEN],
        fingerprint=[1.123456789] * 7,
    )
    assert len(MSGPackSerializer.dumps(full)) < 4096
    many = Brought()
    many.learn({name: number for number, name in enumerate(names)})
    assert len(many.told(names)) == MOST_BROUGHT
    Note(**note(brought=many.told(names)))


def test_what_a_device_brought_is_against_those_chosen_with_it_and_absence_counts():
    brought = Brought()
    brought.learn({"A": 30, "B": 10, "C": 20})
    assert brought.told("ABCD") == {"A": 1.15, "B": 0.85, "C": 1.0}
    for _ in range(20):
        brought.learn({"A": 10, "B": 0})
    assert brought.told("AB") == {"A": pytest.approx(2, abs=0.01), "B": pytest.approx(0, abs=0.01)}
    assert brought.told("C") == {"C": 1.0}
    brought.learn({"A": 0, "B": 0})  # a round in which nobody had anything says nothing
    assert brought.told("A")["A"] > 1.9
