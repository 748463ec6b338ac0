"""When a round is due, by what a peer knows of the others."""

from __future__ import annotations

from types import SimpleNamespace

from tests.trainer.models import make_recipe
from trainer.engine.tally import Tally
from trainer.engine.timing import Timing
from trainer.swarm import clock
from trainer.swarm.progress import Stage
from trainer.swarm.records import Records


def test_a_peer_that_wakes_ends_no_round_alone_before_it_has_looked_who_is_there():
    recipe = make_recipe()
    loop = SimpleNamespace(
        peer=SimpleNamespace(coordinators=frozenset()),
        recipe=recipe,
        learner=SimpleNamespace(round=3),
        tally=Tally(samples=recipe.round.target_samples),
        stage=Stage.TRAINING,
        swarm_samples=lambda: recipe.round.target_samples,
    )
    timing, records = Timing(loop), Records(recipe.round, frozenset())  # type: ignore[arg-type]
    records.take({}, clock.now() - 40)
    assert not timing.due(records.view(3, clock.now()), finishing=False)
    records.take({}, clock.now())
    assert timing.due(records.view(3, clock.now()), finishing=False)
