"""Trains as one process or as a group: `python -m tests.trainer.group_run SIZE FOLDER [ROUNDS]`.

Prints one JSON document: losses of the rounds, the parameters' fingerprint and state at the end,
the moments' bytes in the first process, and every process's own memory.
"""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import torch

from tests.trainer.models import make_batch, make_recipe
from trainer.engine.group_learner import GroupLearner
from trainer.engine.learner import Learner
from trainer.recipe import Choice

WIDE = {"hidden": 128, "layers": 4, "heads": 2, "length": 32}


def make(size: int, folder: Path) -> Learner:
    recipe = make_recipe().model_copy(update={"family": Choice(name="causal", params=WIDE)})
    return GroupLearner(recipe, 0, size, folder) if size > 1 else Learner(recipe, 0)


def download(learner: Learner, ended: threading.Event) -> None:
    """As newcomers do: again and again, on another thread, whatever the learner is at."""
    while not ended.wait(0.02):
        metadata, state = learner.state()
        assert len(state) == 3 * len(learner.params) and metadata["round"] <= learner.round


def main(size: int, folder: Path, rounds: int) -> None:
    learner, losses, ended = make(size, folder), [], threading.Event()
    newcomer = ThreadPoolExecutor().submit(download, learner, ended)
    for number in range(rounds):
        batches = [make_batch(10 * number + part, rows=5) for part in range(3)]
        loss = sum(learner.learn(batch) or 0.0 for batch in batches)
        offer = learner.offer()
        assert offer is not None
        more = learner.learn(make_batch(10 * number + 9, rows=1)) or 0.0  # one more after an offer
        offer = learner.offer()
        losses.append((loss + more) / learner.context.tokens)
        learner.accept(offer.tensors, [])
        if number == rounds // 2:
            learner.load_state(learner.round, learner.state()[1])  # as a newcomer does
    ended.set()
    newcomer.result()
    state = learner.state()[1]
    shard = getattr(learner, "_shard", None)
    moments = sum(t.nbytes for kind in learner.strategy.shared.values() for t in kind)
    family = [psutil.Process(), *psutil.Process().children()]
    print(
        json.dumps(
            {
                "losses": losses,
                "fingerprint": learner.fingerprint(),
                "state": [[float(t.double().sum()), float(t.double().norm())] for t in state],
                "moment_bytes": shard.moment_bytes if shard else moments,
                "own_bytes": [process.memory_full_info().uss for process in family],
            }
        )
    )
    learner.close()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 6)
