"""The batches of a peer that trains: made beside, where there is memory for that, else here."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import torch

from trainer import catalogue
from trainer.data.marks import Mark
from trainer.data.shards import Leases
from trainer.engine import texts
from trainer.engine.beside import Beside
from trainer.engine.delivery import Delivery
from trainer.engine.job import Job
from trainer.engine.sizing import has_room_beside
from trainer.families.base import Batch
from trainer.text.tokenizer import Tokenizer
from trainer.wire import Role

MOST_THREADS = 4
CORES_A_THREAD = 4
log = logging.getLogger(__name__)


@contextmanager
def reading_of(job: Job, tokenizer: Tokenizer) -> Iterator[Reading | None]:
    """None for a coordinator, which reads nothing. Before there is a model, as it forks."""
    if job.role is Role.COORDINATOR:
        yield None
        return
    reading = Reading(job, tokenizer)
    try:
        yield reading
    finally:
        reading.close()


class Reading:
    def __init__(self, job: Job, tokenizer: Tokenizer) -> None:
        self._job, self._tokenizer = job, tokenizer
        self._objective = catalogue.family_of(job.recipe).objective
        self._start, self._passes = texts.count_start(job.folder), count()
        self._beside: Beside | None = None
        self.delivery = Delivery(job.shards)
        if has_room_beside(job.recipe):
            self._beside = Beside(self._make, job.shards, _num_threads())
        else:
            log.info("There is little memory: texts are read between passes, not beside them")

    def batches(self, name: str, size: Callable[[], int]) -> Iterator[Batch]:
        """Endless; no two calls read in the same order. `name` is this peer's."""

        def begin() -> Iterator[tuple[Batch, Mark]]:
            seed = f"{self._job.recipe.seed}/{name}/{self._start}/{next(self._passes)}"
            if self._beside is not None:
                return self._beside.batches(seed, size)
            return self._make(seed, size, self._job.shards)

        return self.delivery.of(begin)

    def _make(
        self, seed: str, size: Callable[[], int], leases: Leases | None
    ) -> Iterator[tuple[Batch, Mark]]:
        job = self._job
        return texts.shared_batches(
            job.recipe, job.texts, self._tokenizer, self._objective, seed, size, leases
        )

    def close(self) -> None:
        if self._beside is not None:
            self._beside.close()


def _num_threads() -> int:
    """Of the tokenizer. Where the processor trains, its cores have work."""
    if not torch.cuda.is_available():
        return 1
    return max(1, min(MOST_THREADS, (os.cpu_count() or 1) // CORES_A_THREAD))
