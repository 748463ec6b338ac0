"""The revocation list in the DHT: coordinators publish it, everybody reads it.

A list is cut into pages, because hivemind 1.1.12 cannot carry more than about 8 KB through the pipe
to its DHT. Readers do their reading inside the DHT's process, whose file brings the news to the
others; a stranger who stuffs the key costs nobody a pipe.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from hivemind.dht import DHT

from trainer.passport import RevocationList
from trainer.swarm import clock
from trainer.swarm.identity import owner_of, subkey_of
from trainer.swarm.revoked import Revoked

PAGE_LENGTH = 2000
MOST_PAGES = 400
READ_EVERY_S = 10.0
READ_AGAIN_S = 3.0  # after a list that was just being replaced
LOOK_EVERY_S = 1.0  # at what the site has told this coordinator
PUBLISH_EVERY_S = 60.0
KEPT_S = 3600.0  # as long as a passport: the others have it while the coordinator is away
log = logging.getLogger(__name__)
Source = Callable[[], RevocationList | None]


class Notices:
    """A thread that keeps `revoked` up to date: from `source` on a coordinator, else by the DHT."""

    def __init__(
        self,
        dht: DHT,
        revoked: Revoked,
        *,
        swarm_id: str,
        owner: str,
        coordinators: Collection[str],
        source: Source | None,
    ) -> None:
        self._dht, self._revoked = dht, revoked
        self._key, self._subkey = f"{swarm_id}.revoked", subkey_of(owner)
        self._coordinators, self._source = set(coordinators), source
        self._next_publication = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            try:
                pause_s = self._publish(self._source) if self._source else self._read()
            except Exception as error:  # the next turn tries again; passports expire in any case
                log.info("could not pass the revocation list on: %r", error)
                pause_s = READ_AGAIN_S

    def _publish(self, source: Source) -> float:
        newest = source()
        is_new = newest is not None and self._revoked.take(newest)
        signed = self._revoked.signed()
        if signed is not None and (is_new or time.monotonic() >= self._next_publication):
            expires = clock.now() + KEPT_S
            for number, page in enumerate(pages_of(signed)):
                self._store(f"{self._key}.{self._dht.peer_id}.{number}", page, expires)
            self._next_publication = time.monotonic() + PUBLISH_EVERY_S
        return LOOK_EVERY_S

    def _store(self, key: str, page: list[Any], expires: float) -> None:
        future = self._dht.store(key, page, expires, subkey=self._subkey, return_future=True)
        future.result(timeout=10)

    def _read(self) -> float:
        act = partial(_take, key=self._key, coordinators=self._coordinators, revoked=self._revoked)
        complete = self._dht.run_coroutine(act, return_future=True).result(timeout=20)
        return READ_EVERY_S if complete else READ_AGAIN_S


def pages_of(signed: RevocationList) -> list[list[Any]]:
    """Values of DHT records, each with the number of all and its part of the text."""
    text = signed.model_dump_json()
    parts = [text[start : start + PAGE_LENGTH] for start in range(0, len(text), PAGE_LENGTH)]
    return [[len(parts), part] for part in parts]


async def _take(_dht: DHT, node: Any, key: str, coordinators: set[str], revoked: Revoked) -> bool:
    """Runs in the DHT's process. False: there is a list, but not all of it arrived."""
    complete = True
    for coordinator in coordinators:
        text = await _fetch(node, f"{key}.{coordinator}", coordinator)
        try:
            if text:
                revoked.take(RevocationList.model_validate_json(text))
        except ValueError as error:  # pages of two lists, or a coordinator that forges
            log.info("the revocation list of %s is not used: %s", coordinator, error)
            complete = False
    return complete


async def _fetch(node: Any, key: str, coordinator: str) -> str:
    """The pages that this coordinator has stored, joined; empty without any."""
    text, number, pages = "", 0, 1
    while number < min(pages, MOST_PAGES):
        found = await node.get(f"{key}.{number}", latest=True)
        entries = found.value if found is not None and isinstance(found.value, dict) else {}
        page = next((e.value for s, e in entries.items() if owner_of(s) == coordinator), None)
        if not (isinstance(page, list) and len(page) == 2 and isinstance(page[1], str)):
            break
        pages, text = int(page[0]), text + page[1]
        number += 1
    return text
