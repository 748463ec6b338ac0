"""What the engine is doing, told to the outbox at most once a second on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from trainer.engine.job import Outbox
from trainer.swarm import clock
from trainer.wire import Activity, Progress

LEAST_S = 1.0
MOST_S = 5.0
METER_S = 20.0


class Meter:
    """Samples per second over the last `METER_S`; any thread may add and read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: deque[tuple[float, int]] = deque()
        self._total = 0  # of all in `_seen`
        self._since = clock.monotonic()

    def add(self, samples: int) -> None:
        with self._lock:
            self._seen.append((clock.monotonic(), samples))
            self._total += samples

    def restart(self) -> None:
        """After a pause, which is not to count as slowness."""
        with self._lock:
            self._seen.clear()
            self._total = 0
            self._since = clock.monotonic()

    def rate(self) -> float:
        with self._lock:
            now = clock.monotonic()
            while self._seen and self._seen[0][0] < now - METER_S:
                self._since, samples = self._seen.popleft()
                self._total -= samples
            span = now - max(self._since, now - METER_S)
            return self._total / span if span > 0.2 else 0.0


class Status:
    """The newest figures; any thread may set and read them."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._lock = threading.Lock()
        self._now = Progress(round=0, activity=Activity.STARTING, reason="loading the model")
        self._swarm_samples: Callable[[], int] = lambda: 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def watch_swarm(self, swarm_samples: Callable[[], int]) -> None:
        self._swarm_samples = swarm_samples

    def set(self, activity: Activity, reason: str = "", **figures: Any) -> None:
        with self._lock:
            self._now = self._now.model_copy(
                update={"activity": activity, "reason": reason[:300], **figures}
            )

    @property
    def now(self) -> Progress:
        with self._lock:
            return self._now

    def _run(self) -> None:
        sent, at = None, float("-inf")
        while not self._stop.wait(max(0.1, at + LEAST_S - time.monotonic())):
            figures = self.now.model_copy(update={"swarm_samples": self._swarm_samples()})
            if figures != sent or time.monotonic() - at >= MOST_S:
                self._outbox.progress(figures)
                sent, at = figures, time.monotonic()
        self._outbox.progress(self.now)
