"""What a round is told by: each strategy's rule and state in words, and each device's figures."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.devices import Q3, SGD, known, play, swarm
from tests.trainer.rehearsals import make_plan
from trainer import catalogue
from trainer.recipe import Choice
from trainer.simulator.run import Rehearsal
from trainer.wire import Outcome, Receipt, RoundSeen, VerdictSummary

NAMES = sorted(catalogue.plugins("strategies"))
every_strategy = pytest.mark.parametrize("name", NAMES)


def told_after(name: str, steps: Any = (3, 1, 4, 2), **params: Any) -> str:
    devices = swarm(name, Q3, 5.0, **known(name, **{**SGD, **params}))
    play(devices, steps)
    told = {device.strategy.told for device in devices}
    assert len(told) == 1  # all say the same
    return told.pop()


@every_strategy
def test_every_strategy_says_its_rule_and_where_it_is_from(name: str):
    plugin = catalogue.plugins("strategies")[name]
    assert plugin.formula.startswith("device: ") and "\nall: " in plugin.formula
    assert plugin.source.words and plugin.source.address.startswith("https://")


@every_strategy
def test_every_strategy_tells_all_members_alike_what_it_made_of_a_round(name: str):
    assert 20 < len(told_after(name)) <= 300


def test_the_words_follow_from_what_was_chosen_and_done():
    assert told_after("fedavg") == "the model is the mean of what the devices made of it"
    assert "0.5 of the way" in told_after("fedavg", outer_learning_rate=0.5)
    assert "velocity of length" in told_after("diloco")
    assert "gave back 0.1 of its way" in told_after("fedprox", mu=2.0)
    assert "gave back" not in told_after("fedprox", mu=0.0)
    assert "taken 2.5 times" in told_after("fednova") and "1 to 4 steps" in told_after("fednova")
    assert "c is the mean of all members' own" in told_after("scaffold")


def test_scaffold_tells_when_its_books_begin_anew():
    devices = swarm("scaffold", Q3, 5.0, **SGD)
    play(devices, 3)
    play(devices[1:], 3)
    assert "new books begin" in devices[1].strategy.told
    play(devices[1:], 3)
    assert "c is the mean" in devices[1].strategy.told


class Kept(Rehearsal):
    """All reports, by who made them."""

    def run(self) -> dict[str, Any]:
        self.kept: list[tuple[str, Any]] = []
        report = self.ledger.report

        def keep(name: str, body: Any, at_s: float) -> None:
            self.kept.append((name, body))
            report(name, body, at_s)

        self.ledger.report = keep  # type: ignore[method-assign]
        return super().run()


@pytest.mark.parametrize("strategy", ["dedloc", "fedavg"])
def test_receipts_and_rounds_of_real_loops_carry_the_figures(tmp_path, strategy: str):
    plan = make_plan(tmp_path, rounds=3, peers=3)
    params = {} if strategy == "dedloc" else {"local_optimizer": "sgd"}
    recipe = plan.recipe.model_copy(update={"strategy": Choice(name=strategy, params=params)})
    rehearsal = Kept(make_plan(tmp_path, rounds=3, peers=3, recipe=recipe))
    assert rehearsal.run()["reached"]
    receipts = [b for _, b in rehearsal.kept if isinstance(b, Receipt) and b.accepted]
    seen = [b.verdict for _, b in rehearsal.kept if isinstance(b, RoundSeen)]
    assert receipts and seen
    for receipt in receipts:
        assert receipt.steps and receipt.norm and receipt.weight
        if strategy == "dedloc":
            assert receipt.drift == 0  # nobody moves before the average
        else:
            assert receipt.drift == pytest.approx(receipt.norm, rel=1e-4)
    for verdict in seen:
        same = {r.verdict.told for r in receipts if r.verdict.round == verdict.round}
        assert verdict.told and same <= {verdict.told}
        norms = [r.norm for r in receipts if r.verdict.round == verdict.round]
        assert verdict.mean_norm is not None
        assert not norms or 0 < verdict.mean_norm <= 1.001 * max(norms)


def test_messages_of_older_agents_are_read():
    verdict = {"round": 3, "outcome": "clean", "members": 1, "samples": 8, "tokens": 80}
    old = {"round": 3, "samples": 8, "tokens": 80, "accepted": True, "verdict": verdict}
    receipt = Receipt.model_validate({"kind": "receipt", **old})
    assert (receipt.steps, receipt.norm, receipt.drift, receipt.weight) == (None,) * 4
    assert receipt.verdict == VerdictSummary(
        round=3, outcome=Outcome.CLEAN, members=1, samples=8, tokens=80
    )
    assert (receipt.verdict.mean_norm, receipt.verdict.told) == (None, "")
