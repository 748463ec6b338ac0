"""A plain torch training loop as a process: `python -m bench.plain_loop FOLDER SECONDS`.

Takes the same batches as the member whose job lies in FOLDER, as large as that one would find them
where the recipe does not say, one thread, one optimizer step for each target batch. Prints the
samples a second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from tests.swarm.member import job_in
from trainer.device import memory
from trainer.engine import texts
from trainer.engine.job import Job
from trainer.engine.learner import Learner
from trainer.engine.sizing import Sizer
from trainer.families.base import Batch
from trainer.text.tokenizer import Tokenizer


def learning(
    folder: Path, size: Callable[[], int] | None = None
) -> tuple[Job, Learner, Iterator[Batch]]:
    """The job in FOLDER, with its learner and its batches; one thread from now on."""
    torch.set_num_threads(1)
    job = job_in(folder)
    tokenizer = Tokenizer.of(job.recipe, job.tokenizer)
    learner = Learner(job.recipe, tokenizer.pad, job.base)
    batches = texts.training_batches(
        job.recipe, job.texts, tokenizer, learner.family.objective, folder.name, size
    )
    return job, learner, batches


def samples_per_s(folder: Path, seconds: float) -> float:
    """Counts whole micro-batches, of a size that is found before the time begins."""
    sizer = Sizer(job_in(folder).recipe, "plain loop")
    job, learner, batches = learning(folder, lambda: sizer.batch)

    def add_up() -> Batch:
        batch = next(batches)
        learner.family.loss_sum(learner.model, batch).backward()
        return batch

    warm_up(sizer, add_up)
    optimizer = torch.optim.AdamW(learner.params, lr=1e-3)
    samples = since_step = 0
    began = time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        batch = add_up()
        samples += batch.samples
        since_step += batch.samples
        if since_step >= job.recipe.round.target_samples:
            optimizer.step()
            optimizer.zero_grad()
            since_step = 0
    return samples / elapsed


def warm_up(sizer: Sizer, add_up: Callable[[], Batch]) -> None:
    """Micro-batches until one is no longer followed by a larger one."""
    before = 0
    while sizer.batch != before:
        before, began = sizer.batch, time.perf_counter()
        batch = add_up()
        sizer.took(batch.samples, time.perf_counter() - began, memory.used_bytes())


if __name__ == "__main__":
    print(samples_per_s(Path(sys.argv[1]), float(sys.argv[2])))
