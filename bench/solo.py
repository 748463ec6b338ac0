"""One agent alone against a plain torch loop: the demo's model, same batches, one thread each."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from tests.swarm.swarm import Member, Swarm, wait_for
from trainer.engine import texts
from trainer.engine.learner import Learner
from trainer.recipe import Choice
from trainer.text.tokenizer import Tokenizer

GOAL = 0.9
NUM_ROUNDS = 5
TARGET_SAMPLES = 2000
PLAIN_S = 25.0
MODEL = Choice(name="causal", params={"hidden": 128, "layers": 3, "heads": 4, "length": 64})
FRACTION = "of a plain torch loop's samples/s"


def plain_samples_per_s(swarm: Swarm) -> float:
    """Accumulate the same target batch and step, in one process, for PLAIN_S."""
    torch.set_num_threads(1)
    tokenizer = Tokenizer(swarm.tokenizer, swarm.recipe.tokenizer.vocab_size)
    learner = Learner(swarm.recipe, tokenizer.pad)
    batches = texts.training_batches(
        swarm.recipe, (swarm.text,), tokenizer, learner.family.objective, "bench"
    )
    optimizer = torch.optim.AdamW(learner.params, lr=1e-3)
    samples = since_step = 0
    began = time.perf_counter()
    while (elapsed := time.perf_counter() - began) < PLAIN_S:
        batch = next(batches)
        learner.family.loss_sum(learner.model, batch).backward()
        samples += batch.samples
        since_step += batch.samples
        if since_step >= TARGET_SAMPLES:
            optimizer.step()
            optimizer.zero_grad()
            since_step = 0
    return samples / elapsed


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
            before = plain_samples_per_s(swarm)
            swarm.open()
            member = swarm.add("alone")
            wait_for("rounds", lambda: len(member.rounds()) > NUM_ROUNDS, 600)
            agent = credited_samples_per_s(member)
        finally:
            swarm.close()
        after = plain_samples_per_s(swarm)
    plain = (before + after) / 2
    return {
        "value": round(agent / plain, 3),
        "unit": FRACTION,
        "goal": f">= {GOAL}",
        "met": agent / plain >= GOAL,
        "compared_with": {"plain_samples_per_s": round(plain, 1), "agent": round(agent, 1)},
    }
