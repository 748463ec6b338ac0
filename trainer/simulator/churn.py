"""Who leaves when, how, and when somebody new comes in their place."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

KILLED_SHARE = 0.7  # of those who leave; the others say goodbye
BACK_AFTER_S = (5.0, 45.0)


@dataclass(frozen=True)
class Leave:
    """Somebody leaves `after_s` the one before; `pick` in [0, 1) says who of those present."""

    after_s: float
    pick: float
    killed: bool
    replaced_after_s: float


def leaves(per_minute: float, rng: random.Random) -> Iterator[Leave]:
    """Endless. A Poisson process of that many a minute."""
    while per_minute > 0:
        yield Leave(
            after_s=rng.expovariate(per_minute / 60),
            pick=rng.random(),
            killed=rng.random() < KILLED_SHARE,
            replaced_after_s=rng.uniform(*BACK_AFTER_S),
        )
