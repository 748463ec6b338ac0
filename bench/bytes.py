"""Payload bytes that a volunteer sends and receives for each sample it trains on, with two peers:
one average for each micro-batch (DeDLOC at its most frequent) against DiLoCo with H local steps;
and the held-out loss of both after as many samples of the demo's text."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.equal_samples import Task
from tests.swarm.swarm import ROOT, Member, Swarm
from trainer.recipe import Choice

GOAL = 500.0
LOSS_GOAL = 1.01  # of DeDLOC's
LEARNING_RATE = 2e-3
MICRO_BATCH = 8
LONGEST_S = 300.0
DEDLOC, DILOCO = Choice(name="dedloc"), Choice(name="diloco")
CASES = {  # strategy, micro-batches of a peer in a round, codec
    "dedloc": (DEDLOC, 1, "fp32"),
    "dedloc fp16": (DEDLOC, 1, "fp16"),
    "dedloc int8": (DEDLOC, 1, "int8"),
    "diloco H=1": (DILOCO, 1, "fp32"),
    "diloco H=50": (DILOCO, 50, "fp32"),
    "diloco H=500": (DILOCO, 500, "fp32"),
    "diloco H=500 int8": (DILOCO, 500, "int8"),
}


def start(member: Member, num_batches: int, other: Member) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "bench.exact_peer"),
            *(str(member.folder), str(num_batches), other.peer_id),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=(member.folder / "log").open("w"),
        text=True,
        start_new_session=True,
    )


def bytes_per_sample(folder: Path, strategy: Choice, num_batches: int, codec: str) -> float:
    """Over all rounds of both peers, each process of which ends by itself."""
    samples = 2 * num_batches * MICRO_BATCH
    swarm = Swarm(folder, target_samples=samples, codec=codec)
    changes = {"strategy": strategy, "micro_batch": MICRO_BATCH}
    swarm.recipe = swarm.recipe.model_copy(update=changes)
    members = [swarm.prepare("coordinator", "coordinator"), swarm.prepare("other")]
    pairs = zip(members, reversed(members), strict=True)
    running = [start(member, num_batches, other) for member, other in pairs]
    try:
        said = [process.communicate(timeout=LONGEST_S)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    rounds = [json.loads(line) for text in said for line in text.splitlines()]
    if not rounds:
        raise RuntimeError("no average: " + members[0].log()[-500:])
    traffic = sum(each["bytes_in"] + each["bytes_out"] for each in rounds)
    return traffic / sum(each["samples"] for each in rounds)


def main() -> dict[str, Any]:
    found = {}
    for label, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            found[label] = bytes_per_sample(Path(folder), *case)
        print(f"{label}: {found[label]:,.1f} bytes a sample", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        task = Task(Path(folder))
        losses = {
            "dedloc": task.held_out_loss(DEDLOC, 1, LEARNING_RATE),
            "diloco H=50": task.held_out_loss(DILOCO, 50, LEARNING_RATE),
            "diloco H=500": task.held_out_loss(DILOCO, 500, LEARNING_RATE),
        }
    less = round(found["dedloc"] / found["diloco H=500"], 3)
    worse = losses["diloco H=500"] / losses["dedloc"]
    return {
        "value": less,
        "unit": "times fewer bytes a sample, DiLoCo H=500 than DeDLOC each micro-batch",
        "goal": f">= {GOAL:.0f}, held-out loss at most {LOSS_GOAL} times as high",
        "met": less >= GOAL and worse <= LOSS_GOAL,
        "compared_with": {
            "bytes_per_sample": {label: round(value, 1) for label, value in found.items()},
            "held_out_loss": {label: round(value, 4) for label, value in losses.items()},
        },
    }
