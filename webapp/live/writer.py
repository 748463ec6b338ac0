"""One writer per web process: reports wait in a bounded buffer and are stored in batches.

All writes of the live area go through its one thread, because SQLite takes one writer at a time.
An acknowledgement is sent only after the commit. While the database does not answer, the batch is
kept and tried again, and a full buffer makes the sockets wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError

from trainer.wire import Report
from webapp.collaborations import finish_rules
from webapp.collaborations.models import Collaboration
from webapp.live.store import Stored, store
from webapp.live.threads import in_thread

logger = logging.getLogger(__name__)
T = TypeVar("T")
BATCH_EVERY_S = 0.1
MOST_IN_BATCH = 2000
MOST_WAITING = 10_000
FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0
AWAY = (OperationalError, InterfaceError)


class Sender(Protocol):
    """Where a report came from, and who is told what became of it."""

    session_id: UUID

    def stored(self, seq: int) -> None:
        """Everything up to and including `seq` is in the database."""

    def unstorable(self, reason: str, *, retry_after_s: float) -> None:
        """The next report cannot be stored now."""


class Writer:
    def __init__(self, on_stored: Callable[[Stored], None]) -> None:
        self._on_stored = on_stored
        self._waiting: asyncio.Queue[tuple[Sender, Report]] = asyncio.Queue(MOST_WAITING)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="writer")

    async def put(self, sender: Sender, report: Report) -> None:
        """Waits while the buffer is full."""
        await self._waiting.put((sender, report))

    async def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Runs a short write on the writer's thread, and again while the database is away."""
        delay_s = FIRST_DELAY_S
        while True:
            try:
                return await in_thread(function, *args, executor=self._thread, **kwargs)
            except AWAY as error:
                logger.warning("the database does not answer (%s); again in %s s", error, delay_s)
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, LONGEST_DELAY_S)

    async def run(self) -> None:
        """Stores batches until cancelled."""
        while True:
            batch = [await self._waiting.get()]
            await asyncio.sleep(BATCH_EVERY_S)
            while len(batch) < MOST_IN_BATCH and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            await self._store_batch(batch)

    async def _store_batch(self, batch: list[tuple[Sender, Report]]) -> None:
        try:
            stored = await self.call(store, _items(batch))
        except Exception:  # one bad report must not hold up everybody else's
            logger.exception("a batch of %d reports could not be stored", len(batch))
            await self._store_apart(batch)
            return
        self._tell(batch, stored)
        for collaboration in stored.moved:
            await self._check_rules(collaboration)

    async def _store_apart(self, batch: list[tuple[Sender, Report]]) -> None:
        """One transaction per session; who sent what cannot be stored is told."""
        for session_id in dict.fromkeys(sender.session_id for sender, _ in batch):
            part = [one for one in batch if one[0].session_id == session_id]
            try:
                self._tell(part, await self.call(store, _items(part)))
            except Exception:
                logger.exception("reports of session %s could not be stored", session_id)
                for sender in {sender for sender, _ in part}:
                    sender.unstorable(
                        "The site could not store a report of this session.", retry_after_s=60
                    )

    def _tell(self, batch: list[tuple[Sender, Report]], stored: Stored) -> None:
        highest: dict[Sender, int] = {}
        for sender, report in batch:
            highest[sender] = max(report.seq, highest.get(sender, 0))
        for sender, seq in highest.items():
            held = stored.seqs.get(sender.session_id)
            if held is None:
                sender.unstorable("The site does not know this session any more.", retry_after_s=60)
                continue
            sender.stored(held)
            if held < seq:  # another socket of the session lost what lies between
                sender.unstorable("A report before this one is missing.", retry_after_s=1)
        self._on_stored(stored)

    async def _check_rules(self, collaboration: Collaboration) -> None:
        try:
            await self.call(finish_rules.check, collaboration)
        except Exception:  # a timed job checks again
            logger.exception("the finish rules of %s could not be checked", collaboration.slug)

    async def close(self) -> None:
        """Waits for the write that is under way; nothing starts after it."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)


def _items(batch: list[tuple[Sender, Report]]) -> list[tuple[UUID, Report]]:
    return [(sender.session_id, report) for sender, report in batch]
