"""Unequal devices in every strategy: one class, next to nothing, a lot, and ten times slower."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.trainer.averaging import end_round
from tests.trainer.models import make_batch, make_recipe
from tests.trainer.rehearsals import make_plan
from tests.trainer.test_every_strategy import LOCAL, every_local_one, every_strategy
from tests.trainer.test_judgement import KNOWN, LIMITS, coordinator, note
from tests.trainer.test_simulator import balanced
from trainer import catalogue
from trainer.engine.learner import Learner
from trainer.families.base import Batch
from trainer.recipe import Choice, Optimizer, Participation, Recipe
from trainer.simulator.plan import Plan
from trainer.simulator.run import Rehearsal
from trainer.swarm.judgement import judge
from trainer.swarm.weights import discount

TAKES_LATE = [name for name in LOCAL if catalogue.plugins("strategies")[name].takes_late]
SLOW_S, FAST_S = 2.5, 0.25  # a micro-batch
STEPS = 8
DEADLINE_S = 8.0


def options_for(name: str) -> Optimizer:
    is_sgd = catalogue.create("strategies", Choice(name=name)).optimizer == "sgd"
    rate = 0.3 if is_sgd else 1e-2
    return Optimizer(learning_rate=rate, warmup_rounds=0, schedule="constant")


def recipe_for(name: str) -> Recipe:
    return make_recipe(strategy=Choice(name=name), optimizer=options_for(name))


def one_class(rows: int) -> Batch:
    """Every target is the same token."""
    batch = make_batch(rows=rows)
    return Batch(batch.ids, batch.targets.masked_fill(batch.targets != -100, 9), batch.attention)


@every_strategy
def test_d02_one_class_next_to_nothing_and_a_lot_train_one_model_that_learns(name: str):
    everything, single, tiny, nothing = (Learner(recipe_for(name), pad_id=0) for _ in range(4))
    test = [make_batch(seed=900, rows=32)]
    before, _ = everything.evaluate(test)
    for number in range(15):
        for step in range(6):
            everything.learn(make_batch(6 * number + step, rows=24))
        single.learn(one_class(2))
        tiny.learn(make_batch(number, rows=1))
        end_round([everything, single, tiny, nothing])
    for other in (single, tiny, nothing):
        pairs = zip(other.anchor, everything.anchor, strict=True)
        assert all(torch.equal(mine, theirs) for mine, theirs in pairs)
    after, _ = nothing.evaluate(test)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in everything.anchor)
    assert after < before - 0.2


def unequal(folder: Path, name: str, rounds: int = 5) -> Plan:
    """Rounds that end when all have taken their steps, or at the deadline."""
    plan = make_plan(folder, peers=4, rounds=rounds)
    timing = plan.recipe.round.model_copy(
        update={"target_samples": 10**6, "deadline_s": DEADLINE_S}
    )
    choice = Choice(name=name, params={"most_local_steps": STEPS})
    changes = {"round": timing, "strategy": choice, "optimizer": options_for(name)}
    return replace(plan, recipe=plan.recipe.model_copy(update=changes))


def taking_late(plan: Plan, rounds: int) -> Plan:
    rules = Participation(late_rounds=rounds)
    return replace(plan, recipe=plan.recipe.model_copy(update={"participation": rules}))


def rehearse(plan: Plan, slow_s: float = SLOW_S) -> tuple[Rehearsal, dict]:
    """The first peer needs so long for a micro-batch, the others FAST_S."""
    rehearsal, rows = Rehearsal(plan), plan.recipe.micro_batch or 1

    def set_speeds() -> None:
        for life in rehearsal.lives[1:]:
            life._samples_per_s = rows / (slow_s if life is rehearsal.lives[1] else FAST_S)
        if len(rehearsal.lives) <= plan.peers:
            rehearsal.events.after(0.01, set_speeds)

    set_speeds()
    return rehearsal, rehearsal.run()


@every_local_one
def test_a_device_ten_times_slower_hands_in_the_part_it_has_and_nobody_waits_for_more(
    tmp_path: Path, name: str
):
    rehearsal, figures = rehearse(unequal(tmp_path, name))
    assert figures["reached"] and figures["stuck"] == []
    assert figures["samples"]["released"] == 0 and balanced(figures["samples"])
    slow = rehearsal.lives[1].name
    rows = rehearsal.plan.recipe.micro_batch or 1
    counts = {slow: set(), "others": set()}
    for who, receipt in rehearsal.ledger._receipts:
        assert receipt.accepted
        counts[slow if who == slow else "others"].add(receipt.samples // rows)
    assert max(counts[slow]) < STEPS and counts["others"] == {STEPS}
    assert figures["simulated_s"] / rehearsal.plan.rounds < DEADLINE_S + SLOW_S + 2


@pytest.mark.parametrize("name", ["dedloc", "fednova"])
def test_no_device_has_more_than_the_capped_part_of_any_round(tmp_path: Path, name: str):
    """The fast ones have ten times the samples of the slow one."""
    plan = make_plan(tmp_path, peers=4, rounds=5)
    if name != "dedloc":
        plan = unequal(tmp_path, name)
    rules = Participation(most_share=0.3)
    recipe = plan.recipe.model_copy(update={"participation": rules})
    rehearsal, figures = rehearse(replace(plan, recipe=recipe))
    assert figures["reached"] and balanced(figures["samples"])
    receipts = [receipt for _, receipt in rehearsal.ledger._receipts if receipt.accepted]
    for number in {receipt.round for receipt in receipts}:
        weights = [r.weight for r in receipts if r.round == number]
        assert sum(weights) == pytest.approx(1)
        assert max(weights) <= max(0.3, 1 / len(weights)) + 1e-9


@pytest.mark.parametrize("name", ["dedloc", *LOCAL])
def test_d05_what_comes_after_its_round_is_stale_and_its_maker_takes_the_new_state(
    tmp_path: Path, name: str
):
    """One micro-batch takes longer than a round: nothing of it is in any average."""
    plan = make_plan(tmp_path, peers=4, rounds=8)
    if name != "dedloc":
        plan = unequal(tmp_path, name, rounds=8)
    rehearsal, figures = rehearse(plan, slow_s=12.0)
    assert figures["reached"] and balanced(figures["samples"])
    late = rehearsal.lives[1]
    receipts = [receipt for who, receipt in rehearsal.ledger._receipts if who == late.name]
    assert not any(receipt.accepted for receipt in receipts)
    for number, seen in rehearsal.ledger.witnessed.items():
        assert seen.members == 3, number
    assert any("went on to round" in reason for reason in figures["refused"])
    assert late.round > 0  # it has taken the state of a later round


def lateness(rehearsal: Rehearsal) -> list[int]:
    """By its weight, how late each of the first device's accepted results was."""
    name = rehearsal.lives[1].name
    receipts = [(who, r) for who, r in rehearsal.ledger._receipts if r.accepted]
    found = []
    for mine in (receipt for who, receipt in receipts if who == name):
        others = sum(r.tokens for who, r in receipts if r.round == mine.round) - mine.tokens
        heavy = {s: mine.tokens * discount(s) for s in range(20)}
        matching = [
            s for s, w in heavy.items() if mine.weight == pytest.approx(w / (w + others), abs=1e-9)
        ]
        found += matching or [-1]
    return found


@pytest.mark.parametrize("name", TAKES_LATE)
def test_where_the_recipe_allows_it_a_late_result_is_taken_for_less(tmp_path: Path, name: str):
    """FedBuff: s rounds late it weighs 1 / sqrt(1 + s) of what it would."""
    plan = taking_late(unequal(tmp_path, name, rounds=12), 20)
    rehearsal, figures = rehearse(plan, slow_s=12.0)
    assert figures["reached"] and balanced(figures["samples"])
    assert not any("went on to round" in reason for reason in figures["refused"])
    assert lateness(rehearsal) and min(lateness(rehearsal)) >= 1


def test_a_result_that_is_more_rounds_late_than_the_recipe_allows_is_dropped(tmp_path: Path):
    plan = taking_late(unequal(tmp_path, "fedavg", rounds=14), 1)
    rehearsal, figures = rehearse(plan, slow_s=25.0)
    assert figures["reached"] and balanced(figures["samples"])
    assert any("went on to round" in reason for reason in figures["refused"])
    assert set(lateness(rehearsal)) <= {1}


def test_who_claims_less_lateness_than_weight_or_more_than_allowed_is_refused():
    limits = replace(LIMITS, late_rounds=4)
    fair = note(late=3, weight=500.0)
    for offer, words in (
        (note(late=3, weight=501.0), "claimed a weight of 501"),
        (note(late=5, weight=400.0), "was made 5 rounds ago: too late"),
    ):
        gathered = {"A": note(), "B": fair, "M": coordinator(), "X": offer}
        found = judge(gathered, 5, limits, KNOWN)
        assert found.refused.keys() == {"X"} and words in found.refused["X"]
    assert judge({"A": note(), "B": fair}, 5, LIMITS, KNOWN).refused.keys() == {"B"}


@pytest.mark.parametrize("name", sorted({"dedloc", *LOCAL} - set(TAKES_LATE)))
def test_a_strategy_whose_results_are_of_their_round_alone_is_refused_with_late_ones(name: str):
    recipe = make_recipe(strategy=Choice(name=name), participation=Participation(late_rounds=2))
    with pytest.raises(ValueError, match="has no use for results of earlier rounds"):
        catalogue.check(recipe)
