"""Speaking roles of plays as volunteers, each with what it says: five strategies, and each alone or
all texts on one machine, with equal local steps and rounds; three seeds, each with other roles.

In the simulator: the real rounds, with people as fast in one strategy as in another, so that local
steps are unequal, but the same ones for all. Bytes are those of the planner, which a device sends
and receives in a round at most. The rates are each optimizer's best for FedAvg, mu FedProx's best
for the plays in Li et al. 2020; nothing else is tuned.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from bench.roles_task import make_task
from trainer.experiment import Experiment
from trainer.planner.traffic import recipe_round_bytes
from trainer.recipe import Choice
from trainer.simulator.findings import CENTRALISED, LOCAL_ONLY, Run
from trainer.simulator.stage import Stage

ROUNDS, VOLUNTEERS, SEEDS = 30, 8, range(3)
SGD: dict[str, int | float | str | bool] = {"local_optimizer": "sgd", "local_momentum": 0.9}
PLAIN = "FedAvg"
TWICE = "SCAFFOLD"
KINDS = {
    PLAIN: Choice(name="fedavg", params=SGD),
    "FedProx mu=0.001": Choice(name="fedprox", params={**SGD, "mu": 0.001}),
    TWICE: Choice(name="scaffold", params=SGD),
    "FedNova": Choice(name="fednova", params=SGD),
    "DiLoCo (AdamW)": Choice(name="diloco"),
    "FedAvg (AdamW)": Choice(name="fedavg"),
}
BASELINES = (LOCAL_ONLY, CENTRALISED)
Runs = Mapping[str, Sequence[Run]]  # by name, one of each seed


def run(name: str, seed: int) -> tuple[Run, int]:
    """And the bytes of one of its rounds; 0 for a baseline."""
    torch.set_num_threads(1)
    choice = KINDS.get(name)
    experiment = Experiment(
        strategies=tuple(KINDS.values()),
        split="label",
        topics_each=1,
        volunteers=VOLUNTEERS,
        rounds=ROUNDS,
    )
    with tempfile.TemporaryDirectory(prefix="roles-") as folder:
        task = make_task(Path(folder), experiment, seed)
        stage = Stage(experiment, task, Path(folder), seed, lambda: None)
        if choice is None:
            return (stage.local_only() if name == LOCAL_ONLY else stage.centralised()), 0
        sent = recipe_round_bytes(task.recipe.model_copy(update={"strategy": choice}))
        return stage.together(name, choice), sent


def rounds_to(level: float, run: Run) -> int | None:
    """How many until the held-out loss is no higher; None: in none of them."""
    return next((number + 1 for number, loss in run.curve if loss <= level), None)


def summary(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean, sample standard deviation, and of how many."""
    known = [value for value in values if value is not None]
    spread = stdev(known) if len(known) > 1 else None
    return {
        "mean": round(fmean(known), 4) if known else None,
        "std": spread and round(spread, 4),
        "n": len(known),
    }


def row(name: str, runs: Runs, round_bytes: int) -> dict[str, Any]:
    """`to_level`: until the loss that FedAvg ends with, of the same seed."""
    own, plain = runs[name], runs[PLAIN]
    found: dict[str, Any] = {
        "loss": summary([run.loss for run in own]),
        "on_own_texts": summary([run.own for run in own]),
        "worst": summary([run.worst for run in own]),
    }
    if round_bytes:
        pairs = list(zip(own, plain, strict=True))
        found["above_fedavg"] = summary([_apart(one.loss, other.loss) for one, other in pairs])
        needed = [rounds_to(other.curve[-1][1], one) for one, other in pairs]
        found["rounds_to_level"] = summary(needed)
        found["mb_to_level"] = summary([n and n * round_bytes / 1e6 for n in needed])
        found["simulated_s"] = summary([run.simulated_s for run in own])
        found["samples_lost"] = summary([run.released_samples for run in own])
    return found


def _apart(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def main() -> dict[str, Any]:
    names = [*KINDS, *BASELINES]
    jobs = [(name, seed) for seed in SEEDS for name in names]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = dict(zip(jobs, pool.starmap(run, jobs, chunksize=1), strict=True))
    runs = {name: [found[name, seed][0] for seed in SEEDS] for name in names}
    table = {name: row(name, runs, found[name, SEEDS[0]][1]) for name in names}
    for name, figures in table.items():
        print(name, figures, flush=True)
    return judge(table, runs)


def judge(table: Mapping[str, Mapping[str, Any]], runs: Runs) -> dict[str, Any]:
    """Whether sharing pays at all, and whether SCAFFOLD's second vector does."""
    alone = runs[LOCAL_ONLY]
    better = all(
        one.reached and one.own is not None and one.own < (other.own or 0)
        for name in KINDS
        for one, other in zip(runs[name], alone, strict=True)
    )
    twice, plain = (table[name]["mb_to_level"] for name in (TWICE, PLAIN))
    ratio = twice["mean"] and round(twice["mean"] / plain["mean"], 2)
    return {
        "value": ratio,
        "unit": "bytes of SCAFFOLD until the loss that FedAvg ends with, in FedAvg's",
        "goal": "every strategy gets through with every seed, and fits each volunteer's own "
        "held-out texts better on average than what they learn alone",
        "met": better,
        "scaffold_reached_it_with": twice["n"],
        "table": table,
    }
