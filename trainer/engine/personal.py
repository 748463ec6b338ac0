"""A model of the volunteer's own: the last shared one, and some steps on their texts alone.

Of the models on the way, the one that does best on the held-out texts is kept, on the device. Steps
are those of the strategy's optimizer, with what it remembers, at a tenth of the recipe's rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from trainer.engine import checkpoint
from trainer.engine.learner import Learner
from trainer.families.base import Batch

FILENAME = "own-model.safetensors"
STEPS = 60
LOOK_EVERY = 10  # steps
RATE = 0.1  # of the recipe's highest learning rate
MAKING = "training a model of your own on your texts, which may take minutes; Ctrl-C skips it"


@dataclass(frozen=True)
class Personal:
    """`path` None: no step made it better, and nothing was kept. Losses are on held-out texts."""

    path: Path | None
    shared: float
    own: float

    def in_words(self) -> str:
        if self.path is None:
            return (
                f"the last shared model, with loss {self.shared:.3f}, is the best for them: more "
                "steps on them alone made it no better"
            )
        return (
            f"a model of your own, with loss {self.own:.3f}, is at {self.path} and stays on this "
            f"computer; the last shared one has {self.shared:.3f}"
        )


def make_personal(
    learner: Learner,
    batches: Iterator[Batch],
    held_out: Sequence[Batch],
    folder: Path,
    is_wanted: Callable[[], bool],
) -> Personal | None:
    """Leaves the learner's parameters changed. None when it is no longer wanted meanwhile.

    Raises SourceUnavailable when the texts cannot be read, and OSError when there is no room.
    """
    learner.begin()
    shared = best = learner.evaluate(held_out)[0]
    kept: list[Tensor] = []
    for group in learner.optimizer.param_groups:
        group["lr"] = RATE * learner.recipe.optimizer.learning_rate
    for step in range(1, STEPS + 1):
        if not is_wanted():
            return None
        _step(learner, next(batches))
        if step % LOOK_EVERY:
            continue
        loss = learner.evaluate(held_out)[0]
        if not loss < best:
            break
        best = loss
        kept = [param.detach().cpu().clone() for param in learner.params]
    if not kept:
        return Personal(None, shared, best)
    path = folder / FILENAME
    named = {f"model.{name}": tensor for name, tensor in zip(learner.names, kept, strict=True)}
    checkpoint.write(path, named, learner.round, learner.recipe.sha256())
    path.chmod(0o600)
    return Personal(path, shared, best)


def _step(learner: Learner, batch: Batch) -> None:
    learner.optimizer.zero_grad(set_to_none=False)
    loss = learner.family.loss_sum(learner.model, batch.to(learner.device)) / batch.tokens
    loss.backward()
    clip_grad_norm_(learner.params, learner.recipe.optimizer.clip_norm)
    learner.optimizer.step()
