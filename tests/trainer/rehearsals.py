"""Short rehearsals for tests: a toy model, rounds of a few simulated seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from trainer.simulator.files import make_toy
from trainer.simulator.plan import Plan

torch.set_num_threads(1)
ROUND_S = 3.0


def make_plan(folder: Path, **changes: Any) -> Plan:
    """Peers of the default speed take about ROUND_S for a round."""
    peers = changes.get("peers", 5)
    recipe, files = make_toy(folder, peers)
    timing = recipe.round.model_copy(
        update={"target_samples": round(ROUND_S * peers * recipe.micro_batch)}
    )
    recipe = recipe.model_copy(update={"round": timing})
    return Plan(**{"recipe": recipe, "files": files, "peers": peers, "rounds": 6, **changes})
