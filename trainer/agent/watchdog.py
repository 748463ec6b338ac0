"""Watches the memory of the agent and of all that it started; past a limit it starts again.

Guards against hivemind 1.1.12, whose averaging process may keep what failed rounds left behind:
hivemind#264 tells of 16 GB in three hours.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from trainer.agent.wishes import Wishes
from trainer.device import memory

MIB, GIB = 2**20, 2**30
EVERY_S = 10.0
WARM_ROUNDS = 3  # until then buffers grow to their usual size
GROWTH = 1.5  # times what it was when warm, and
GROWTH_BYTES = GIB  # so much more: then it is no longer usual
SCARCE_BYTES = 256 * MIB  # left on the machine: then a fifth of growth is too much
SCARCE_GROWTH = 1.2
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reading:
    """Bytes of the agent's main process, and of all processes that it started."""

    own: int
    started: int

    @property
    def total(self) -> int:
        return self.own + self.started


def read() -> Reading:
    return Reading(memory.own_bytes(), memory.children_bytes())


def is_outgrown(warm: Reading, now: Reading) -> bool:
    """Whether the main process or the others have grown beyond what a healthy peer needs."""
    pairs = ((warm.own, now.own), (warm.started, now.started))
    return any(after > max(GROWTH * before, before + GROWTH_BYTES) for before, after in pairs)


class Watchdog:
    """`rounds` counts the rounds that ended. `is_linked`: a peer that starts again needs the site.

    While the site is away it starts again only when the machine's memory runs out.
    """

    def __init__(
        self, wishes: Wishes, *, rounds: Callable[[], int], is_linked: Callable[[], bool]
    ) -> None:
        self._wishes, self._rounds, self._is_linked = wishes, rounds, is_linked
        self._warm: Reading | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            if words := self.look(read(), memory.available_bytes()):
                self._wishes.start_again(words)
                return

    def look(self, now: Reading, available_bytes: int) -> str:
        """Why it should start again, for the page; "" while all is well."""
        if self._warm is None or self._rounds() < WARM_ROUNDS:
            self._warm = now
            return ""
        is_scarce = available_bytes < SCARCE_BYTES and now.total > SCARCE_GROWTH * self._warm.total
        is_due = is_outgrown(self._warm, now) and self._is_linked()
        if not is_scarce and not is_due:
            return ""
        words = (
            f"its memory grew from {self._warm.total / GIB:.1f} to {now.total / GIB:.1f} GiB, of "
            f"which {now.started / GIB:.1f} are averaging's and the network's; it starts again"
        )
        log.warning("%s (%d MiB are left on this machine)", words, available_bytes // MIB)
        return words
