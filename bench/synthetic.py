"""FedProx's synthetic(1, 1) with stragglers: 30 devices, 10 of them in each of 200 rounds, and of
these 0, 50 or 90 % with less work than the others; five strategies, five seeds.

Li et al. 2020, section 5: E = 20, micro-batches of 10, rate 0.01, nothing tuned; who has less work
does 1 to 19 passes. FedAvg as the paper has it drops these; the others keep what they did. SCAFFOLD
lets all devices count alike. The strategies are those of the catalogue; the network is left out.
Loss and accuracy are means over the last 50 rounds, and the wobble is the loss's spread in them.
"""

from __future__ import annotations

import multiprocessing
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import torch

from bench.synthetic_task import DEVICES, Client, generate, measure
from tests.trainer.averaging import end_round
from trainer.recipe import Choice

ROUNDS, CHOSEN, EPOCHS = 200, 10, 20
LOOK_EVERY, LAST_LOOKS = 5, 10
SEEDS = range(5)
STRAGGLERS = (0.0, 0.5, 0.9)
SGD: dict[str, int | float | str | bool] = {"local_optimizer": "sgd", "weigh_by": "samples"}
KINDS: dict[str, Choice] = {
    "FedAvg (drops)": Choice(name="fedavg", params=SGD),
    "FedProx mu=0": Choice(name="fedprox", params={**SGD, "mu": 0.0}),
    "FedProx mu=1": Choice(name="fedprox", params={**SGD, "mu": 1.0}),
    "FedNova": Choice(name="fednova", params=SGD),
    "SCAFFOLD": Choice(name="scaffold", params={**SGD, "weigh_by": "equal"}),
}
FLAT, STEADIER, BETTER = 1.05, 10.0, 0.08
Figures = tuple[float, float, float]  # loss, accuracy, wobble


def run(kind: str, stragglers: float, seed: int) -> Figures:
    torch.set_num_threads(1)
    data = generate(seed)
    clients = [Client(KINDS[kind], train) for train, _ in data]
    order, choose = np.random.default_rng(1000 + seed), np.random.default_rng(seed)
    looks = []
    for number in range(ROUNDS + 1):
        if number % LOOK_EVERY == 0:
            looks.append(measure(clients[0].anchor[0], data))
        if number == ROUNDS:
            break
        chosen = choose.choice(DEVICES, CHOSEN, replace=False)
        quick = set(choose.choice(chosen, round(CHOSEN * (1 - stragglers)), replace=False))
        passes = {n: EPOCHS if n in quick else int(choose.integers(1, EPOCHS)) for n in chosen}
        for n in chosen:
            if n in quick or "drops" not in kind:
                clients[n].learn(passes[n], order)
        end_round(clients)
    losses, right = zip(*looks[-LAST_LOOKS:], strict=True)
    return fmean(losses), fmean(right), pstdev(losses)


def main() -> dict[str, Any]:
    jobs = [(kind, rate, seed) for rate in STRAGGLERS for kind in KINDS for seed in SEEDS]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = dict(zip(jobs, pool.starmap(run, jobs, chunksize=1), strict=True))
    table: dict[str, dict[str, list[float]]] = {}
    for kind in KINDS:
        for rate in STRAGGLERS:
            figures = [found[kind, rate, seed] for seed in SEEDS]
            means = [round(fmean(part), 4) for part in zip(*figures, strict=True)]
            spreads = [round(pstdev(part), 4) for part in zip(*figures, strict=True)]
            table.setdefault(kind, {})[f"{rate:.0%}"] = [*means, *spreads[:2]]
            print(kind, f"{rate:.0%}", *means, flush=True)
    return judge(table)


def judge(table: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    prox, plain, kept = (table[k] for k in ("FedProx mu=1", "FedAvg (drops)", "FedProx mu=0"))
    flat = max(row[0] for row in prox.values()) / min(row[0] for row in prox.values())
    steadier = min(plain[rate][2] / prox[rate][2] for rate in prox)
    better = prox["90%"][1] - plain["90%"][1]
    same = kept["0%"] == plain["0%"]
    return {
        "value": round(better, 3),
        "unit": "accuracy of FedProx (mu = 1) over FedAvg's with 90 % stragglers",
        "goal": f">= {BETTER}; its loss at most {FLAT} times as high whatever their number; "
        f"{STEADIER:.0f} times steadier; mu = 0 without stragglers is FedAvg",
        "met": better >= BETTER and flat <= FLAT and steadier >= STEADIER and same,
        "flat": round(flat, 3),
        "steadier": round(steadier, 1),
        "mu_0_is_fedavg": same,
        "loss_accuracy_wobble_and_spreads_of_the_first_two": table,
    }
