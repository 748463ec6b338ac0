"""16 simulated peers of which 1 or 7 lie (NaN, scale, weight, sign flip, delayed): held-out loss
after the same number of rounds against the honest swarm."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.rehearsal import make_plan
from trainer.simulator.run import Rehearsal

NUM_PEERS, NUM_ROUNDS = 16, 18
HARMLESS = ("nan", "scale", "weight")  # these are to change nothing
OTHERS = ("flip", "delayed")  # what they do without a robust average is reported
BAND = 0.05


def main() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        plan = make_plan(Path(folder), NUM_PEERS, NUM_ROUNDS)
        honest = Rehearsal(plan).run()["held_out_loss"]
        ratios: dict[str, float] = {}
        for kind in (*HARMLESS, *OTHERS):
            for count in (1, 7):
                figures = Rehearsal(replace(plan, liars=(kind,) * count)).run()
                ratios[f"{kind}:{count}"] = round(figures["held_out_loss"] / honest, 3)
                print(json.dumps({"liars": f"{kind}:{count}", **_shown(figures)}), flush=True)
    worst = max(ratios[f"{kind}:{count}"] for kind in HARMLESS for count in (1, 7))
    return {
        "value": worst,
        "unit": f"times the honest held-out loss, worst of {', '.join(HARMLESS)}",
        "goal": f"<= {1 + BAND}",
        "met": worst <= 1 + BAND,
        "compared_with": {"honest_loss": round(honest, 4), **ratios},
    }


def _shown(figures: dict[str, Any]) -> dict[str, Any]:
    return {key: figures[key] for key in ("held_out_loss", "reached", "attempts", "stuck")}
