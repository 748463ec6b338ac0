"""Publishes our record and reads the others', on a thread of its own.

Guards against hivemind 1.1.12, whose tracker stores once for each step and lets one record with a
huge round pull everybody forward. Here: at most one store a second, and one more when the round or
stage changes; unbelievable records are ignored (`trainer/swarm/records.py`, `progress.py`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from hivemind.dht import DHT

from trainer.recipe import Round
from trainer.swarm import clock, identity
from trainer.swarm.progress import EXPIRES_S, Standing, View
from trainer.swarm.records import Records, worth_storing
from trainer.swarm.reping import answers, reping

READ_EVERY_S = 1.0
SOONEST_S = 0.25  # after a turn, however often it is woken
READ_WHEN_IDLE_S = 4.0
REPING_LOST_S = 5.0
log = logging.getLogger(__name__)


class Tracker:
    """`standing` makes our record; it is called on the tracker's thread.

    `addresses` are the coordinators' (ending in /p2p/<peer id>), which are dialled again while
    they are lost.
    """

    def __init__(
        self,
        dht: DHT,
        *,
        swarm_id: str,
        owner: str,
        timing: Round,
        addresses: Collection[str],
        coordinators: Collection[str],
        standing: Callable[[], Standing],
    ) -> None:
        self._dht, self._key = dht, f"{swarm_id}.progress"
        self._subkey = identity.subkey_of(owner)
        self._addresses, self.coordinators = tuple(addresses), frozenset(coordinators)
        self._make = standing
        self._names: dict[bytes, str] = {self._subkey: ""}
        self._records = Records(timing, self.coordinators)
        self._lock = threading.Lock()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._fresh = threading.Condition()
        self._reads = 0
        self._published: Standing | None = None
        self._next_ping = 0.0
        self.idle = False
        self._thread = threading.Thread(target=self._run, name="tracker", daemon=True)

    def start(self) -> None:
        self._read()
        self._thread.start()

    def view(self) -> View:
        own_round, now = self._make().round, clock.now()
        with self._lock:
            return self._records.view(own_round, now)

    def seen(self, round_number: int) -> dict[str, int]:
        """The most samples that peers of this round can offer at the next average, by `short`."""
        with self._lock:
            return self._records.seen(round_number, clock.now())

    def heard_at(self) -> float | None:
        """When the site last heard a device ask for a part of a text, as far as is known here."""
        with self._lock:
            return self._records.heard_at

    def publish(self) -> None:
        """Soon, instead of at the next turn: something changed that others wait for."""
        self._wake.set()

    def forget(self, names: Collection[str]) -> None:
        """Ignores what these peers have said so far: they were lost."""
        with self._lock:
            self._records.forget(names, clock.now())

    def forget_the_silent(self, names: Collection[str]) -> None:
        """Asks peers that did not come whether they are still there; takes up to 3 s for each."""
        with self._lock:
            reachable = self._records.reachable(names)
        self.forget([name for name in reachable if not answers(self._dht, name)])

    def assume(self, names: Collection[str], round_number: int) -> None:
        """These peers have entered this round with us, whatever their last records say."""
        with self._lock:
            self._records.assume(names, round_number, clock.now())

    def refreshed(self, timeout_s: float) -> bool:
        """Waits for a complete reading that begins after this call; whether there was one."""
        with self._fresh:
            wanted = self._reads + 2  # the next to end may have begun already
            self._wake.set()
            return self._fresh.wait_for(lambda: self._reads >= wanted, timeout_s)

    def stop(self, *, says_goodbye: bool) -> None:
        """Takes our record back, where the network still works, so that nobody waits for us."""
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout=5)
        if says_goodbye and self._published is not None:
            self._try("take the record back", lambda: self._store(None, clock.now() + EXPIRES_S))

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            self._try("publish", self._publish)
            self._try("read", self._read)
            self._try("dial", self._dial)
            with self._fresh:
                self._reads += 1
                self._fresh.notify_all()
            pause_s = READ_WHEN_IDLE_S if self.idle else READ_EVERY_S
            self._wake.wait(max(0.05, began + pause_s - time.monotonic()))
            self._wake.clear()
            self._stop.wait(max(0.0, began + SOONEST_S - time.monotonic()))

    def _publish(self) -> None:
        mine = self._make()
        if not worth_storing(mine, self._published):
            return
        self._published = mine
        self._store(mine.model_dump(mode="json"), clock.now() + EXPIRES_S)

    def _store(self, value: Any, expires: float) -> None:
        future = self._dht.store(self._key, value, expires, subkey=self._subkey, return_future=True)
        future.result(timeout=10)

    def _read(self) -> None:
        asked_at = clock.now()
        found = self._dht.get(self._key, latest=True, return_future=True).result(timeout=10)
        entries = found.value if found is not None and isinstance(found.value, dict) else {}
        found_by_name = {}
        for subkey, entry in entries.items():
            name = self._name_of(subkey)
            if name:
                found_by_name[name] = entry.value
        with self._lock:
            self._records.take(found_by_name, clock.now(), asked_at)

    def _name_of(self, subkey: Any) -> str:
        """Peer id of a record's owner; "" for our own record and for what is not a record."""
        if not isinstance(subkey, bytes):
            return ""
        if subkey not in self._names:
            self._names[subkey] = identity.owner_of(subkey)
        return self._names[subkey]

    def _dial(self) -> None:
        """Again and again while a coordinator is lost."""
        with self._lock:
            present = self._records.knows(self.coordinators)
        if present or time.monotonic() < self._next_ping:
            return
        self._next_ping = time.monotonic() + REPING_LOST_S
        for address in self._addresses:
            reping(self._dht, address)

    def _try(self, what: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # the next turn tries again; training goes on meanwhile
            log.info("Could not %s: %r", what, error)
