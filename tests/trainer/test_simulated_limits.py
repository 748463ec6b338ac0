"""Limits of a device's local work in a round, in simulated time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.trainer.rehearsals import make_plan
from trainer.recipe import Choice
from trainer.simulator.run import Rehearsal

LIMIT_S = 5.0
SLOWEST_BATCH_S = 4.0


def test_a_limit_in_seconds_lets_fast_and_slow_devices_end_a_round_together(tmp_path: Path):
    """The target cannot end a round here, nor the deadline."""
    plan = make_plan(tmp_path, rounds=4)
    timing = plan.recipe.round.model_copy(update={"target_samples": 10**7, "deadline_s": 3600})
    choice = Choice(name="fedavg", params={"most_training_s": LIMIT_S})
    changed = plan.recipe.model_copy(update={"round": timing, "strategy": choice})
    rehearsal = Rehearsal(replace(plan, recipe=changed))
    figures = rehearsal.run()
    assert figures["attempts"] == {"clean": 4}
    assert figures["simulated_s"] < 4 * (LIMIT_S + SLOWEST_BATCH_S + 10.0)
    receipts = [(name, each) for name, each in rehearsal.ledger._receipts if each.accepted]
    assert all(LIMIT_S <= each.compute_s < LIMIT_S + SLOWEST_BATCH_S for _, each in receipts[5:])
    samples: dict[str, int] = {}
    for name, each in receipts:
        samples[name] = max(samples.get(name, 0), each.samples)
    assert len(samples) == plan.peers
    assert max(samples.values()) >= 2 * min(samples.values())
