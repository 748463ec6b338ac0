"""Samples a second that 1, 2 and 4 agents keep of as many plain torch loops' at the same time: a
tiny ALBERT with target batches of 256 and 4096, and one of 17 million parameters with 32.

Micro-batches of the tiny one are as large as a device finds them, about a second's work; once more
with 8 sequences, 17 ms, what an agent does beside training shows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.swarm.swarm import ROOT, Member, Swarm
from tests.waiting import wait_for
from trainer.recipe import Choice, Tokenizer

GOAL = 0.97  # of one agent, at the large target
NUM_PEERS = (1, 2, 4)
SMALL = 8  # sequences
LONGEST_S = 600.0


@dataclass(frozen=True)
class Case:
    """`rounds` are counted after the first of all peers; `plain_s` is a plain loop's time."""

    target_samples: int
    rounds: int
    plain_s: float
    micro_batch: int | None = None
    is_large: bool = False

    def swarm(self, folder: Path) -> Swarm:
        swarm = Swarm(folder, target_samples=self.target_samples, deadline_s=600, averaging_s=120)
        changes: dict[str, Any] = {"micro_batch": self.micro_batch}
        if self.is_large:  # the layout of sahajBERT's ALBERT: 17,053,824 parameters
            sizes = {"hidden": 1024, "layers": 24, "heads": 16, "embedding": 128, "length": 512}
            tokenizer = swarm.recipe.tokenizer
            changes |= {
                "family": Choice(name="albert", params=sizes),
                "tokenizer": Tokenizer(file=tokenizer.file, vocab_size=32_000),
                "sequence_length": 64,
            }
        swarm.recipe = swarm.recipe.model_copy(update=changes)
        return swarm


CASES = {
    "tiny, target 256": Case(256, 20, 15),
    "tiny, target 4096": Case(4096, 4, 15),
    "17 M, target 32": Case(32, 3, 40, micro_batch=2, is_large=True),
}


def plain_samples_per_s(members: list[Member], seconds: float) -> float:
    """Of as many loops as there are members, all at the same time."""
    loops = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.plain_loop", str(member.folder), str(seconds)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for member in members
    ]
    return sum(float(loop.communicate(timeout=LONGEST_S)[0]) for loop in loops)


def swarm_samples_per_s(swarm: Swarm, members: list[Member], rounds: int) -> float:
    """Samples of whole rounds of all members over the time between the first one and the last."""
    coordinator = swarm.open()
    for member in members:
        member.start()

    def of_all() -> list[dict[str, Any]]:
        seen = coordinator.said_at("round")
        return [one for one in seen if one["body"]["verdict"]["members"] == len(members)]

    wait_for("rounds of all", lambda: len(of_all()) > rounds, LONGEST_S)
    first, *rest = of_all()
    samples = sum(one["body"]["verdict"]["samples"] for one in rest)
    return float(samples / (rest[-1]["at"] - first["at"]))


def kept(case: Case, num_peers: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        swarm = case.swarm(Path(folder))
        try:
            swarm.prepare("coordinator", role="coordinator")
            members = [swarm.prepare(f"peer{number}") for number in range(num_peers)]
            before = plain_samples_per_s(members, case.plain_s)
            together = swarm_samples_per_s(swarm, members, case.rounds)
        finally:
            swarm.close()
        after = plain_samples_per_s(members, case.plain_s)
    return together / ((before + after) / 2)


def main() -> dict[str, Any]:
    small = replace(CASES["tiny, target 4096"], micro_batch=SMALL)
    cases = [(label, case, number) for label, case in CASES.items() for number in NUM_PEERS]
    found = {}
    for label, case, number in [*cases, ("tiny, target 4096, micro-batches of 8", small, 1)]:
        found[f"{label}, {number} at once"] = share = round(kept(case, number), 3)
        print(f"{label}, {number} at once: {share:.3f} of plain loops", flush=True)
    value = found["tiny, target 4096, 1 at once"]
    return {
        "value": value,
        "unit": "of a plain torch loop's samples/s, one agent, target 4096",
        "goal": f">= {GOAL}",
        "met": value >= GOAL,
        "compared_with": found,
    }
