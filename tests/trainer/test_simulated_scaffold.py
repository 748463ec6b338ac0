"""SCAFFOLD in the real loop, in simulated time: people come and go, and links stall."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.trainer.rehearsals import make_plan
from trainer.engine.learner import Learner
from trainer.recipe import Choice
from trainer.simulator.links import KINDS, Link
from trainer.simulator.plan import Plan
from trainer.simulator.run import Rehearsal
from trainer.strategies.base import norm_of

SLOW = Link(0.5, 0.5, 0.05)  # an average takes seconds, so people are lost half-way
STALLING = replace(KINDS["lan"], stalls=0.1)


class Audited(Rehearsal):
    """`off` is how far c is from the mean of all c_i, in lengths of c, for each round that all were
    in at once; `renewed` counts those of them in which new books began.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.audited, self.renewed = -1, 0
        self.off: list[float] = []

    def _done(self) -> bool:
        learners = [life.learner for life in self.lives if not life.task.ended]
        number = self.coordinator.round
        if number > self.audited and all(one.round == number for one in learners):
            self.audited = number
            self._audit(learners)
        return super()._done()

    def _audit(self, learners: list[Learner]) -> None:
        books = [one.strategy for one in learners]
        total = float(books[0].shared["booked"][0])
        assert all(float(one.shared["booked"][0]) == total for one in books)
        members = [one for one in books if one.booked]
        if sum(one.booked for one in members) != pytest.approx(total, rel=1e-5):
            return  # somebody has left since: the next average will show it
        if not total:
            assert not members
            self.renewed += 1
            return
        common = books[0].shared["control"]
        means = [
            sum(one.booked / total * one.control[place] for one in members)
            for place in range(len(common))
        ]
        apart = [c - mean for c, mean in zip(common, means, strict=True)]
        self.off.append(norm_of(apart) / norm_of(common))


@pytest.mark.parametrize("disturbance", ["people", "links"])
def test_c_is_the_mean_of_the_living_whoever_comes_goes_or_dies(tmp_path, disturbance):
    plan = make_plan(tmp_path, peers=5, rounds=14)
    options = plan.recipe.optimizer.model_copy(update={"learning_rate": 0.3})
    strategy = Choice(name="scaffold")
    recipe = plan.recipe.model_copy(update={"strategy": strategy, "optimizer": options})
    plan = replace(plan, recipe=recipe)
    if disturbance == "people":
        plan = replace(plan, leaves_per_minute=1.0, links=((SLOW, 1.0),))
    else:
        plan = replace(plan, links=((STALLING, 1.0),), seed=2)
    rehearsal = Audited(plan)
    figures = rehearsal.run()
    assert figures["reached"] and figures["stuck"] == []
    assert figures["last_loss"] < figures["first_loss"]
    assert rehearsal.renewed > 0 and len(rehearsal.off) > 4
    assert max(rehearsal.off) < 5e-3  # of fp16 on the wire
