"""What each peer's clock shows: how wrong it still is after it was set by the site's."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.simulator.events import Events, Task

EPOCH_S = 1_700_000_000.0  # swarm time of second 0


@dataclass(frozen=True)
class Error:
    """`offset_s` at second 0, and seconds that are gained in a million."""

    offset_s: float = 0.0
    ppm: float = 0.0


class Timekeeper:
    """A `trainer.swarm.clock.Clock` in simulated time. Set `task` before its peer runs."""

    task: Task

    def __init__(self, events: Events, error: Error) -> None:
        self._events, self._error = events, error

    def now(self) -> float:
        return EPOCH_S + self._error.offset_s + self.monotonic()

    def monotonic(self) -> float:
        return self._events.now * (1 + self._error.ppm / 1e6)

    def wrong_s(self) -> float:
        return self.now() - EPOCH_S - self._events.now

    def sleep(self, seconds: float) -> None:
        self.task.pause(seconds)
