"""One agent alone against a plain torch loop: the demo's model, same batches, one thread each."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.plain_loop import samples_per_s
from tests.swarm.swarm import Member, Swarm
from tests.waiting import wait_for
from trainer.recipe import Choice

GOAL = 0.9
NUM_ROUNDS = 5
TARGET_SAMPLES = 2000
PLAIN_S = 25.0
MODEL = Choice(name="causal", params={"hidden": 128, "layers": 3, "heads": 4, "length": 64})
FRACTION = "of a plain torch loop's samples/s"


def credited_samples_per_s(member: Member) -> float:
    """Samples of whole rounds over the time between the first and the last receipt."""
    receipts = [r for r in member.said_at("receipt") if r["body"]["accepted"]]
    span_s = receipts[-1]["at"] - receipts[0]["at"]
    return sum(r["body"]["samples"] for r in receipts[1:]) / span_s


def main() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        swarm = Swarm(Path(folder), target_samples=TARGET_SAMPLES, deadline_s=120)
        swarm.recipe = swarm.recipe.model_copy(update={"family": MODEL, "sequence_length": 64})
        try:
            swarm.prepare("coordinator", role="coordinator")
            member = swarm.prepare("alone")
            before = samples_per_s(member.folder, PLAIN_S)
            swarm.open()
            member.start()
            wait_for("rounds", lambda: len(member.rounds()) > NUM_ROUNDS, 600)
            agent = credited_samples_per_s(member)
        finally:
            swarm.close()
        after = samples_per_s(member.folder, PLAIN_S)
    plain = (before + after) / 2
    return {
        "value": round(agent / plain, 3),
        "unit": FRACTION,
        "goal": f">= {GOAL}",
        "met": agent / plain >= GOAL,
        "compared_with": {"plain_samples_per_s": round(plain, 1), "agent": round(agent, 1)},
    }
