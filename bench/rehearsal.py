"""Plans of simulated benchmarks: a toy model, rounds of about 8 simulated seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from trainer.simulator.files import make_toy
from trainer.simulator.plan import Plan

FILL_S = 5.0  # that peers of the default speed take for a round's samples


def make_plan(folder: Path, peers: int, rounds: int, **options: Any) -> Plan:
    torch.set_num_threads(1)
    recipe, files = make_toy(folder, peers)
    timing = recipe.round.model_copy(
        update={"target_samples": round(FILL_S * peers * recipe.micro_batch)}
    )
    falling = {"schedule": "linear", "total_rounds": rounds}  # the last rounds settle
    optimizer = recipe.optimizer.model_copy(update=falling)
    recipe = recipe.model_copy(update={"round": timing, "optimizer": optimizer})
    return Plan(recipe, files, peers=peers, rounds=rounds, **options)
