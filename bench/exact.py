"""Four unequal peers (DeDLOC, fp32) against one process that takes the same samples as the same
large batches: how far apart the two models are after 30 rounds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.swarm.replay import deviation
from tests.swarm.swarm import Swarm
from tests.waiting import wait_for

NUM_ROUNDS = 30
SLOWER_BY_S = (0.0, 0.02, 0.1, 0.4)  # a micro-batch
GOAL = 1e-5  # float32 sums in another order, through 30 steps of Adam
LONGEST_S = 900.0


def main() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        swarm = Swarm(Path(folder), codec="fp32")
        try:
            coordinator = swarm.open()
            peers = [
                swarm.add(f"peer{place}", lies={"slow": seconds})
                for place, seconds in enumerate(SLOWER_BY_S)
            ]
            wait_for("rounds", lambda: coordinator.round >= NUM_ROUNDS, LONGEST_S)
            for member in (*peers, coordinator):
                member.stop()
            rounds, apart = deviation(swarm, peers, coordinator)
            samples = [sum(r["samples"] for r in p.said("receipt") if r["accepted"]) for p in peers]
        finally:
            swarm.close()
    return {
        "value": float(f"{apart:.3g}"),
        "unit": "distance of the two models, relative to what was learned",
        "goal": f"<= {GOAL}",
        "met": apart <= GOAL,
        "compared_with": {"rounds": rounds, "samples_of_each_peer": samples},
    }
