"""How long a peer that is to stop stays, so that what it did is not lost."""

from __future__ import annotations

from trainer.swarm import clock
from trainer.wire import Wish

HAND_IN_S = 5.0  # it waits so long for a round that is nearly over
GIVE_UP_S = 9.0  # it breaks off an average that takes longer


class Leaving:
    def __init__(self) -> None:
        self._began: float | None = None

    def note(self, wish: Wish) -> None:
        if wish is not Wish.STOP:
            self._began = None
        elif self._began is None:
            self._began = clock.monotonic()

    def is_overdue(self) -> bool:
        return self._waited_s() > GIVE_UP_S

    def can_await(self, samples: float, samples_per_s: float) -> bool:
        """Whether so many more come at this rate before it has waited too long."""
        left_s = HAND_IN_S - self._waited_s()
        return left_s >= 0 and samples <= left_s * samples_per_s

    def _waited_s(self) -> float:
        return clock.monotonic() - self._began if self._began is not None else 0.0
