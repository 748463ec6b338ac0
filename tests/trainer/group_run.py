"""Trains as groups do: `python -m tests.trainer.group_run FOLDER FAMILY SIZE:SPLIT...`.

torchrun may start it, too.

Prints one JSON list, with a document for each group in turn (SIZE 1: for one process alone): the
losses of the rounds and lengths of their offers, the parameters' fingerprint and state at the end,
and what each process holds between two micro-batches.
"""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from tests.trainer.models import make_batch, make_recipe
from tests.trainer.tiny_bases import adapt, lora, make_base
from trainer.engine import torchrun
from trainer.engine.group_learner import GroupLearner
from trainer.engine.learner import Learner
from trainer.launcher.machine import is_started_by_torchrun
from trainer.recipe import Choice, Optimizer
from trainer.strategies.base import norm_of

ROUNDS = 6
WIDE = {
    "albert": {"hidden": 128, "layers": 4, "heads": 2, "embedding": 33, "length": 32},
    "causal": {"hidden": 128, "layers": 4, "heads": 2, "length": 32},
}

KINDS = {"albert": "lamb", "causal": "adamw"}
STEADY: dict[str, Any] = {"learning_rate": 1e-2, "warmup_rounds": 0, "schedule": "constant"}


def make(size: int, folder: Path, family: str = "causal", split: str = "optimizer") -> Learner:
    if family == "llama":
        base = make_base(folder / "base")
        wide = adapt(base, adapter=lora(rank=16))
        return (
            GroupLearner(wide, 0, size, folder, split, base) if size > 1 else Learner(wide, 0, base)
        )
    choice = Choice(name=family, params=WIDE[family])
    recipe = make_recipe(optimizer=Optimizer(kind=KINDS[family], **STEADY))
    recipe = recipe.model_copy(update={"family": choice})
    return GroupLearner(recipe, 0, size, folder, split) if size > 1 else Learner(recipe, 0)


def download(learner: Learner, ended: threading.Event) -> None:
    """As newcomers do: again and again, on another thread, whatever the learner is at."""
    while not ended.wait(0.05):
        metadata, state = learner.state()
        assert len(state) == 3 * len(learner.params) and metadata["round"] <= learner.round


def train(learner: Learner) -> dict[str, Any]:
    losses, norms, ended = [], [], threading.Event()
    with ThreadPoolExecutor() as pool:
        newcomer = pool.submit(download, learner, ended)
        for number in range(ROUNDS):
            batches = [make_batch(10 * number + part, rows=5) for part in range(3)]
            loss = sum(learner.learn(batch, rows=2) or 0.0 for batch in batches)
            offer = learner.offer()
            assert offer is not None
            more = learner.learn(make_batch(10 * number + 9, rows=1)) or 0.0  # after an offer
            offer = learner.offer()
            losses.append((loss + more) / learner.context.tokens)
            norms.append(norm_of(offer.tensors))
            learner.accept(offer.tensors, [])
            if number == ROUNDS // 2:
                learner.load_state(learner.round, learner.state()[1])  # as a newcomer does
        ended.set()
        newcomer.result()
    state = learner.state()[1]
    learner.learn(make_batch(99))
    return {
        "losses": losses,
        "norms": norms,
        "fingerprint": learner.fingerprint(),
        "state": [[float(t.double().sum()), float(t.double().norm())] for t in state],
        "held": held(learner),
    }


def held(learner: Learner) -> list[tuple[int, ...]]:
    """For each process the bytes of its parameters, of its gradient and of its moments."""
    if isinstance(learner, GroupLearner):
        return learner.weigh()
    whole = sum(param.nbytes for param in learner.params)
    return [(whole, whole, 2 * whole)]


def main(folder: Path, family: str, groups: list[str]) -> None:
    done = []
    for group in groups:
        size, split = group.split(":")
        place = folder / f"{size}-{split}"  # torch's FileStore reads its file to the very end
        place.mkdir()
        learner = make(int(size), place, family, split)
        done.append(train(learner))
        learner.close()
    print(json.dumps(done))


def agent(size: int = 0) -> int:
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(torchrun.take_part(agent) if is_started_by_torchrun() else agent())
