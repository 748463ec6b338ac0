"""Whether the shared model helps the owner of this device: its loss on their held-out texts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.engine.learner import Learner
from trainer.families.base import Batch

MOST_S = 1.0  # the others wait for an offer meanwhile


@dataclass(frozen=True)
class OwnLosses:
    """Mean losses of one round over the same `tokens` target tokens.

    `before` and `after` are of the shared model as the round began and ended; `alone` of what this
    device made of it by itself, None where it takes no steps of its own.
    """

    round: int
    before: float
    alone: float | None
    after: float
    tokens: int

    def in_words(self) -> str:
        """Is the round worth it for them, and was sharing?"""
        said = f"loss {self.after:.3f} after round {self.round}, {self.before:.3f} before"
        if self.alone is None:
            return said
        is_better = round(self.after, 3) < round(self.alone, 3)
        better = "the shared one is better" if is_better else "that is no worse"
        return f"{said}, {self.alone:.3f} with what this device learned alone: {better}"


class OwnCheck:
    """The engine calls `training_ends` before an offer, and `round_ended` after an average.

    On a slow device it looks at fewer of `batches`, the first ones.
    """

    def __init__(
        self,
        learner: Learner,
        batches: Sequence[Batch],
        tell: Callable[[OwnLosses], None],
        *,
        is_shared: bool,
    ) -> None:
        self._learner, self._batches, self._tell = learner, list(batches), tell
        self._is_shared = is_shared
        self._ended: tuple[int, int] | None = None  # round and local steps
        self._alone: float | None = None
        self._anchor = (learner.round, self._settle())  # the round that its loss is of

    @property
    def batches(self) -> Sequence[Batch]:
        return self._batches

    def training_ends(self) -> None:
        """The same training is looked at once, however often its offer is repeated."""
        learner = self._learner
        ended = learner.round, learner.context.steps
        if ended == self._ended:
            return
        self._ended = ended
        self._alone = self._loss() if learner.strategy.local else None
        if self._anchor[0] != learner.round:  # it caught up with the others
            self._anchor = learner.round, self._loss_of(learner.anchor)

    def round_ended(self, number: int) -> float | None:
        """Tells the owner how round `number` went; its loss if the site may know, too."""
        before, after = self._anchor[1], self._loss()
        self._anchor = self._learner.round, after
        tokens = sum(batch.tokens for batch in self._batches)
        self._tell(OwnLosses(number, before, self._alone, after, tokens))
        return after if self._is_shared and math.isfinite(after) else None

    def _settle(self) -> float:
        """Of the parameters as they are; with fewer batches from now on where that takes long."""
        while True:
            began = time.monotonic()
            loss = self._loss()
            if time.monotonic() - began <= MOST_S or len(self._batches) == 1:
                return loss
            del self._batches[len(self._batches) // 2 :]

    def _loss(self) -> float:
        return self._learner.evaluate(self._batches)[0]

    @torch.no_grad()
    def _loss_of(self, tensors: Sequence[Tensor]) -> float:
        params = self._learner.params
        own = [param.clone() for param in params]
        for param, tensor in zip(params, tensors, strict=True):
            param.copy_(tensor)
        loss = self._loss()
        for param, tensor in zip(params, own, strict=True):
            param.copy_(tensor)
        return loss
