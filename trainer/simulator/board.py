"""The peers' records in place of the DHT, and the part of a peer that writes and reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from trainer.simulator.liars import Liar
from trainer.swarm import clock
from trainer.swarm.progress import Standing, View
from trainer.swarm.records import Records, worth_storing
from trainer.swarm.tracker import READ_EVERY_S, SOONEST_S

if TYPE_CHECKING:
    from trainer.simulator.net import Net

KEPT = 4  # records of one peer that may still be under way to somebody
SILENT_S = 3.0  # what it costs to ask a peer that is gone


class Board:
    """Each peer's last records, with the second in which each left it."""

    def __init__(self) -> None:
        self._stored: dict[str, deque[tuple[float, Standing]]] = {}

    def store(self, name: str, standing: Standing, at: float) -> None:
        self._stored.setdefault(name, deque(maxlen=KEPT)).append((at, standing))

    def remove(self, name: str) -> None:
        self._stored.pop(name, None)

    def read(self, reader: str, arrived: Callable[[str], float]) -> dict[str, Standing]:
        """The newest record of each other peer that left it before `arrived` of its name."""
        found = {}
        for name, records in self._stored.items():
            seen = [standing for at, standing in records if at <= arrived(name)]
            if name != reader and seen:
                found[name] = seen[-1]
        return found


class Tracker:
    """`trainer.swarm.tracker.Tracker` for simulated time: the same records, no thread, no DHT."""

    def __init__(
        self,
        net: Net,
        name: str,
        records: Records,
        standing: Callable[[], Standing],
        liar: Liar | None,
    ) -> None:
        self._net, self._name, self._records = net, name, records
        self._make, self._liar = standing, liar
        self._published: Standing | None = None
        self._last_turn = float("-inf")
        self._woken = self._stopped = False
        self.idle = False

    def start(self) -> None:
        self._read()
        self._go_on()

    def view(self) -> View:
        return self._records.view(self._make().round, clock.now())

    def seen(self, round_number: int) -> dict[str, int]:
        return self._records.seen(round_number, clock.now())

    def publish(self) -> None:
        if not self._woken:
            self._woken = True
            soonest = self._last_turn + SOONEST_S - self._net.events.now
            self._net.events.after(max(soonest, 0.0), self._turn)

    def forget(self, names: Collection[str]) -> None:
        self._records.forget(names, clock.now())

    def forget_the_silent(self, names: Collection[str]) -> None:
        silent = [n for n in self._records.reachable(names) if not self._net.answers(n)]
        clock.sleep(SILENT_S * len(silent))
        self.forget(silent)

    def assume(self, names: Collection[str], round_number: int) -> None:
        self._records.assume(names, round_number, clock.now())

    def refreshed(self, timeout_s: float) -> bool:
        clock.sleep(min(2 * SOONEST_S, timeout_s))
        self._read()
        return True

    def stop(self, *, says_goodbye: bool) -> None:
        self._stopped = True
        if says_goodbye:
            self._net.board.remove(self._name)

    def _go_on(self) -> None:
        """A turn every second, on the thread of the event queue but by the peer's own clock."""
        if not self._stopped:
            self._turn()
            self._net.events.after(READ_EVERY_S, self._go_on)

    def _turn(self) -> None:
        self._woken = False
        if self._stopped:
            return
        self._last_turn = self._net.events.now
        before = clock.follow(self._net.places[self._name].timekeeper)
        try:
            mine = self._make()
            if worth_storing(mine, self._published):
                self._published = mine
                said = self._liar.record(mine) if self._liar else mine
                self._net.board.store(self._name, said, self._net.events.now)
            self._read()
        finally:
            clock.follow(before)

    def _read(self) -> None:
        own, now = self._net.places[self._name].link, self._net.events.now

        def arrived(name: str) -> float:
            return now - own.latency_s - self._net.links[name].latency_s

        self._records.take(self._net.board.read(self._name, arrived), clock.now())
