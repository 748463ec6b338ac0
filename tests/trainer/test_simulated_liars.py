"""What each liar says, and what becomes of the swarm."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.trainer.rehearsals import make_plan
from trainer.recipe import Choice
from trainer.simulator.liars import KINDS
from trainer.simulator.run import Rehearsal
from trainer.swarm.progress import Stage, Standing
from trainer.swarm.verdict import Note
from trainer.wire import Role


def note(number: int = 3) -> Note:
    return Note(
        round=number,
        role=Role.PEER,
        samples=4,
        tokens=10,
        loss_sum=1.0,
        weight=10,
        norm=1.0,
        fingerprint=(1.0,),
    )


def standing() -> Standing:
    return Standing(round=3, samples=4, role=Role.PEER, stage=Stage.TRAINING, started=4000, at=4001)


@pytest.mark.parametrize(
    ("kind", "tensor", "weight"),
    [("flip", -1.0, 10), ("scale", 1000.0, 10), ("weight", 1.0, 10**7), ("claims", 1.0, 10**4)],
)
def test_a_liar_offers_something_else_than_it_found(kind, tensor, weight):
    said, told = KINDS[kind]().offer([torch.ones(2)], note())
    assert torch.equal(said[0], torch.full((2,), tensor))
    assert told.weight == weight


def test_nan_is_offered_and_delayed_is_ten_rounds_old():
    said, _ = KINDS["nan"]().offer([torch.ones(2)], note())
    assert said[0].isnan().all()
    liar = KINDS["delayed"]()
    values = [float(liar.offer([torch.tensor(float(n))], note(n))[0][0]) for n in range(14)]
    assert values == [0.0] * 11 + [1.0, 2.0, 3.0]


def test_false_claims_are_in_the_record_too():
    assert KINDS["claims"]().record(standing()).samples == 4000
    assert KINDS["ahead"]().record(standing()).round == 3 + 10**6
    assert KINDS["early"]().record(standing()).started == 400


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return make_plan(tmp_path_factory.mktemp("toy"), peers=6, rounds=6)


@pytest.fixture(scope="module")
def honest(plan):
    return Rehearsal(plan).run()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("nan", "was not finite"),
        ("scale", "had a norm of … and … is usual"),
        ("weight", "claimed a weight of … for … tokens"),
        ("claims", "claimed … samples, and nobody can have more than … in a round"),
    ],
)
def test_d05_a_lie_that_can_be_seen_is_refused_by_name_and_changes_nothing(
    kind, reason, plan, honest
):
    figures = Rehearsal(replace(plan, liars=(kind,))).run()
    assert figures["reached"] and figures["stuck"] == []
    assert any(told.startswith("peer-") and reason in told for told in figures["refused"])
    assert figures["last_loss"] == pytest.approx(honest["last_loss"], abs=0.3)
    samples = figures["samples"]
    assert samples["in_the_model"] == samples["receipts"] + samples["without_receipt"]


def test_d05_more_steps_than_samples_lengthen_nobodys_step(plan):
    """All members of FedNova step as far as the mean of the paths that they are told of."""
    options = plan.recipe.optimizer.model_copy(update={"learning_rate": 0.3})
    choice = Choice(name="fednova")
    recipe = plan.recipe.model_copy(update={"strategy": choice, "optimizer": options})
    figures = Rehearsal(replace(plan, recipe=recipe, liars=("steps",))).run()
    assert any("steps with … samples" in told for told in figures["refused"])
    assert figures["reached"] and figures["last_loss"] < figures["first_loss"] - 0.3


@pytest.mark.parametrize("kind", ["flip", "delayed", "ahead"])
def test_rounds_go_on_beside_a_lie_that_cannot_be_seen(kind, plan):
    figures = Rehearsal(replace(plan, liars=(kind,))).run()
    assert figures["reached"] and figures["rounds"] == plan.rounds
    assert figures["stuck"] == figures["not_ended"] == []


def test_nobody_is_hurried_by_one_who_says_that_the_round_began_long_ago(plan, honest):
    figures = Rehearsal(replace(plan, liars=("early",))).run()
    assert figures["reached"]
    assert figures["samples"]["in_the_model"] > 0.8 * honest["samples"]["in_the_model"]
