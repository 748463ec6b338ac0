"""No device weighs more than its share of a round: the arithmetic, and who may not be capped."""

from __future__ import annotations

import random

import pytest

from tests.trainer.averaging import end_round
from tests.trainer.devices import Q3, SGD, Device, known, swarm
from tests.trainer.models import make_recipe
from tests.trainer.test_judgement import KNOWN, LIMITS, coordinator, note
from trainer import catalogue
from trainer.recipe import Choice, Participation
from trainer.swarm.judgement import Judgement, judge
from trainer.swarm.verdict import Verdict
from trainer.swarm.weights import capped
from trainer.wire import Outcome

NAMES = sorted(catalogue.plugins("strategies"))
CAPPABLE = [name for name in NAMES if not catalogue.plugins("strategies")[name].uncapped]


@pytest.mark.parametrize(
    ("weights", "share", "found"),
    [
        ((900, 50, 50), 1.0, (900, 50, 50)),
        ((900, 50, 50), 0.9, (900, 50, 50)),
        ((900, 50, 50), 0.5, (100, 50, 50)),
        ((900, 50, 50), 0.4, (200 / 3, 50, 50)),
        ((900, 50, 50), 1 / 3, (50, 50, 50)),
        ((900, 60, 50), 0.1, (50, 50, 50)),  # three cannot each have less than a third
        ((900, 800, 50, 50), 0.3, (75, 75, 50, 50)),
        ((900, 0, 100), 0.5, (100, 0, 100)),
        ((7,), 0.2, (7,)),
        ((0, 0), 0.5, (0, 0)),
    ],
)
def test_the_heaviest_are_lowered_to_their_share_of_what_is_left(weights, share, found):
    named = {str(place): float(weight) for place, weight in enumerate(weights)}
    assert list(capped(named, share).values()) == pytest.approx(list(found))


def test_whatever_the_weights_none_is_above_its_share_and_the_others_stay_as_they_are():
    choose = random.Random(5)
    for _ in range(300):
        weights = {str(n): choose.lognormvariate(0, 3) for n in range(choose.randint(1, 12))}
        share = choose.uniform(0.02, 1)
        found = capped(weights, share)
        total, level = sum(found.values()), max(found.values())
        assert level / total <= max(share, 1 / len(weights)) * (1 + 1e-9)
        for name, weight in weights.items():
            assert found[name] == weight or found[name] == pytest.approx(level)
        again = {name: 1000 * weight for name, weight in weights.items()}
        assert capped(again, share) == pytest.approx({n: 1000 * w for n, w in found.items()})


def test_a_capped_device_has_the_say_of_its_share_in_every_strategy():
    """The same as if it had so many rows less."""
    for name in CAPPABLE:
        options = known(name, **{**SGD, "weigh_by": "tokens"})
        huge, small = (swarm(name, Q3, 5.0, **options) for _ in range(2))
        for rows, devices in (((900, 60, 50, 10), huge), ((120, 60, 50, 10), small)):
            for device, count in zip(devices, rows, strict=True):
                device.learn(4, count)
        end_round(huge, most_share=0.5)
        end_round(small)
        assert [one.x for one in huge] == pytest.approx([one.x for one in small], abs=1e-12)


def test_all_members_cap_the_offers_that_count_and_no_refused_one_moves_the_cap():
    gathered = {"A": note(tokens=9000, weight=9000.0, samples=2000), "M": coordinator()}
    gathered |= {"B": note(), "X": note(weight=1e6)}
    limits = type(LIMITS)(3000, 32, most_share=0.5)
    found = judge(gathered, 5, limits, KNOWN)
    assert found.refused.keys() == {"X"}
    assert found.weights() == {"A": 1000.0, "B": 1000.0, "M": 0.0}
    plain = Judgement(found.notes, found.refused)
    assert plain.weights()["A"] == 9000.0


def test_a_receipt_tells_what_part_of_the_weight_an_offer_had():
    weights = {"A": 300.0, "B": 100.0, "C": 100.0}
    verdict = Verdict(1, Outcome.CLEAN, {}, lost=("C",), weights=weights)
    assert [verdict.say_of(name) for name in "ABCD"] == [0.75, 0.25, 0.0, 0.0]
    assert Verdict(1, Outcome.CLEAN, {}).say_of("A") == 0.0


def test_scaffold_is_refused_with_a_cap_and_told_what_to_do():
    capped_rules = Participation(most_share=0.3)
    for name in NAMES:
        recipe = make_recipe(strategy=Choice(name=name), participation=capped_rules)
        if name in CAPPABLE:
            catalogue.check(recipe)
        else:
            with pytest.raises(ValueError, match="most_share must be 1: to give"):
                catalogue.check(recipe)
    assert Device("scaffold", Q3[0]).strategy.uncapped
