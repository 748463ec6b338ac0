"""How long a round may last, from how long the last ones took. Pure.

Every offer's note says how long after the beginning of its round it arrived. All members of a
round gather the same notes, so all come to the same deadline for the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from statistics import median

REMEMBERED = 16  # rounds
LEAST_ROUNDS = 3  # before them the recipe's deadline holds
MADS = 5.0  # 3.4 standard deviations, were arrivals normally distributed
LEAST_SLACK_S = 10.0


def deadline_s(rounds: Sequence[Sequence[float]], limit_s: float) -> float | None:
    """Median of all arrivals + `MADS` times their median absolute deviation, at most `limit_s`.

    `rounds` has the arrivals in seconds of each of the last rounds; None: they are too few. The
    slack is at least the median itself, so that when half of the peers leave in the middle of a
    round the others can still fill it up; and when rounds become slower for good, the deadline
    follows within a few of them.
    """
    arrivals = [seconds for each in rounds for seconds in each]
    if sum(map(bool, rounds)) < LEAST_ROUNDS:
        return None
    middle = median(arrivals)
    spread = median(abs(seconds - middle) for seconds in arrivals)
    return min(middle + max(MADS * spread, middle, LEAST_SLACK_S), limit_s)


class Deadline:
    """One peer's: the recipe's `limit_s` until there are measurements, its own or the others'."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._rounds: deque[Sequence[float]] = deque(maxlen=REMEMBERED)

    def learn(self, arrivals: Iterable[float]) -> None:
        """The arrivals of a round that was applied."""
        self._rounds.append([min(seconds, self._limit_s) for seconds in arrivals])

    def measured(self) -> float | None:
        return deadline_s(self._rounds, self._limit_s)

    def seconds(self, others: Iterable[float]) -> float:
        """`others` are the deadlines that peers of this round have measured: a newcomer goes by
        the middle one, so that it ends its first rounds with them."""
        return self.measured() or min(median([*others] or [self._limit_s]), self._limit_s)
