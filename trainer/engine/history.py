"""What a peer remembers of its last rounds: enough to tell a bad step, and to undo it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from torch import Tensor

from trainer.swarm.judgement import middle_norm
from trainer.swarm.verdict import Verdict

if TYPE_CHECKING:
    from trainer.engine.learner import Learner

REMEMBERED = 9
LEAST = 5  # rounds, before anything is usual
EXPLODED = 2.0  # times the usual loss, and at least 1 above it
LONGER = 100.0  # that no honest step makes the parameters in one round
BARRED_ROUNDS = 10


class History:
    """`good_round` is the newest whose loss was as it should be; a deep copy of it is kept."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=REMEMBERED)
        self._norms: deque[float] = deque(maxlen=REMEMBERED)
        self._barred: dict[str, tuple[int, str]] = {}
        self.good_round: int | None = None
        self.good_state: Sequence[Tensor] = ()

    def usual_loss(self) -> float | None:
        return median(self._losses) if len(self._losses) >= LEAST else None

    def usual_norm(self) -> float | None:
        return median(self._norms) if len(self._norms) >= LEAST else None

    def add(self, verdict: Verdict) -> None:
        """Good or bad: what stays different becomes usual."""
        if verdict.loss is not None:
            self._losses.append(verdict.loss)
        norm = middle_norm(verdict.notes)
        if norm is not None:
            self._norms.append(norm)

    def keep(self, learner: Learner) -> None:
        self.good_round, self.good_state = learner.round, learner.state()[1]

    def bar(self, name: str, reason: str, round_number: int) -> None:
        """A reducer found this peer's offer unusable: it is set aside for a while."""
        self._barred[name] = (round_number + BARRED_ROUNDS, reason)

    def barred(self, round_number: int) -> dict[str, str]:
        return {
            name: f"is set aside until round {until}, because one before it {reason}"[:300]
            for name, (until, reason) in self._barred.items()
            if round_number <= until
        }


def exploded(loss: float | None, usual: float | None) -> str:
    """Why a round's loss says that the step before it was bad; "" when it does not."""
    if loss is None or usual is None or loss <= max(EXPLODED * usual, usual + 1.0):
        return ""
    return f"the loss rose to {loss:.4g}, where {usual:.4g} is usual"


def burst(length: float, before: float) -> str:
    """Why parameters of this length (L2) must not be used; "" when they may be."""
    if not math.isfinite(length):
        return "the step led to parameters that are not finite"
    if before > 0 and length > LONGER * before:
        return f"the step made the parameters {length / before:,.0f} times as long"
    return ""
