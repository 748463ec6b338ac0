"""The event queue: what happens next, and the one peer that runs now.

Each peer's loop is a thread, because the real loop blocks; exactly one of them runs at a time, and
only until it waits for simulated time. So the order of everything follows from the queue alone.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable

from trainer.swarm import clock

MOST_AT_ONCE = 200_000  # events at one moment: more means that nothing lets time pass


class Killed(BaseException):
    """Ends a peer's thread at once, as kill -9 ends a process. No `except Exception` stops it."""


class Standstill(RuntimeError):
    """Simulated time no longer passes."""


class Events:
    """`now` is in simulated seconds since the beginning."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = self._at_once = 0
        self.baton = _taken_lock()

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Those of one moment happen in the order in which they were asked for."""
        self._count += 1
        heapq.heappush(self._queue, (self.now + max(seconds, 0.0), self._count, act))

    def run(self, until: Callable[[], bool], longest_s: float) -> bool:
        """Until `until` holds (True), nothing is left to happen, or `longest_s` from now on."""
        end = self.now + longest_s
        while not until():
            if not self._queue or self._queue[0][0] > end:
                self.now = end
                return until()
            when, _, act = heapq.heappop(self._queue)
            self._at_once = self._at_once + 1 if when == self.now else 0
            if self._at_once > MOST_AT_ONCE:
                raise Standstill(f"too much happens at second {when:.3f}")
            self.now = when
            act()
        return True


def _taken_lock() -> threading.Lock:
    """One thread waits for it, another gives it: a bare lock is the quickest way to do so."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Task:
    """One peer's thread. `timekeeper` is the clock that everything in it goes by."""

    def __init__(self, events: Events, timekeeper: clock.Clock, body: Callable[[], None]) -> None:
        self._events, self.timekeeper, self._body = events, timekeeper, body
        self._turn = _taken_lock()
        self._waits, self._waiting = 0, False
        self._killed = self.ended = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._events.after(0.0, self._let_run)

    def pause(self, seconds: float) -> None:
        """Called by the peer itself: others run until then, or until somebody wakes it."""
        self._waits += 1
        self._waiting = True
        number = self._waits
        self._events.after(seconds, lambda: self._resume(number))
        self._events.baton.release()
        self._turn.acquire()
        self._waiting = False
        if self._killed:
            raise Killed

    def wake(self) -> None:
        """Ends its pause now, if it is in one."""
        number = self._waits
        self._events.after(0.0, lambda: self._resume(number))

    def kill(self) -> None:
        """Called by anybody but the peer itself; it has ended when this returns."""
        if not self.ended:
            self._killed = True
            self._let_run()

    def _resume(self, number: int) -> None:
        if self._waiting and number == self._waits:
            self._let_run()

    def _let_run(self) -> None:
        if self.ended:
            return
        before = clock.follow(self.timekeeper)
        self._turn.release()
        self._events.baton.acquire()
        clock.follow(before)
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self._killed:
                self._body()
        except Killed:
            pass
        except BaseException as error:  # raised again on the thread of the event queue
            self.error = error
        self.ended = True
        self._events.baton.release()
