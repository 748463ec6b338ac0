"""From which peer a newcomer takes the state: an idle one before a busy one, a fast before a slow.

How many others a donor serves it says when it is called; how fast it is shows in what comes. A
download with long to go gets a rival for a while, and who would be through first goes on. The other
is called again where nobody else is left.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, Protocol

TRIAL_S = 3.0
LONG_S = 10.0  # with less to go than this, a download is left alone
log = logging.getLogger(__name__)


class Transfer(Protocol):
    """One donor's state on its way. Both calls raise whatever is wrong with this donor."""

    received_bytes: int
    missing_bytes: int

    async def begin(self) -> int:
        """Calls the donor; how many others it serves. Also again, after `close`."""

    async def finish(self) -> Any:
        """The state."""

    async def close(self) -> None: ...


class Attempt:
    """A transfer that was begun, and its speed in the newest stretch of time."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.task = asyncio.create_task(transfer.finish())
        self.mark()

    def mark(self) -> None:
        self._since, self._before = time.monotonic(), self.transfer.received_bytes

    def left_s(self) -> float:
        """How long it will take still; 0 when it is there, infinite when nothing comes."""
        if self.task.done():
            return math.inf if self.task.cancelled() or self.task.exception() else 0.0
        rate = (self.transfer.received_bytes - self._before) / (time.monotonic() - self._since)
        return self.transfer.missing_bytes / rate if rate > 0 else math.inf

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.transfer.close()


async def take_from_best(transfers: Iterable[Transfer]) -> Any:
    """The state from one of these donors, tried in this order but for those that are busy, or slow
    where another is faster. None when nobody could give it.
    """
    attempts: list[Attempt] = []
    left: list[Transfer] = []  # the slower ones, the best of them last
    async with aclosing(_begun(transfers)) as donors:

        async def attempt_next() -> Attempt | None:
            async for transfer in donors:
                attempts.append(Attempt(transfer))
                return attempts[-1]
            return None

        async def attempt_again() -> Attempt | None:
            while left:
                if await _begin(transfer := left.pop()) is not None:
                    attempts.append(Attempt(transfer))
                    return attempts[-1]
            return None

        try:
            current = await attempt_next()
            while current is not None:
                current.mark()
                await asyncio.wait({current.task}, timeout=TRIAL_S)
                if current.task.done():
                    if (state := _outcome(current)) is not None:
                        return state
                    current = await attempt_next() or await attempt_again()
                elif current.left_s() > LONG_S and (rival := await attempt_next()) is not None:
                    current, slower = await _faster(current, rival)
                    left.append(slower.transfer)
        finally:
            for attempt in attempts:
                await attempt.close()
    return None


async def _begun(transfers: Iterable[Transfer]) -> AsyncGenerator[Transfer, None]:
    """Transfers from idle donors, then from those that serve others, the least busy ones first."""
    busy: list[tuple[int, Transfer]] = []
    for transfer in transfers:
        others = await _begin(transfer)
        if others == 0:
            yield transfer
        elif others is not None:
            await transfer.close()
            busy.append((others, transfer))
    for _, transfer in sorted(busy, key=lambda one: one[0]):
        if await _begin(transfer) is not None:
            yield transfer


async def _begin(transfer: Transfer) -> int | None:
    """None when this donor cannot be had."""
    try:
        return await transfer.begin()
    except Exception as error:  # whatever is wrong with one donor, the next may do
        log.info("%s cannot give its state: %r", transfer, error)
        await transfer.close()
        return None


async def _faster(current: Attempt, rival: Attempt) -> tuple[Attempt, Attempt]:
    """Who would be through first, by what came from both at the same time; the other, closed."""
    for one in (current, rival):
        one.mark()
    both = {current.task, rival.task}
    await asyncio.wait(both, timeout=TRIAL_S, return_when=asyncio.FIRST_COMPLETED)
    slower, faster = (current, rival) if rival.left_s() < current.left_s() else (rival, current)
    if slower is current:
        log.info("%s is slow; %s goes on in its place", current.transfer, rival.transfer)
    await slower.close()
    return faster, slower


def _outcome(attempt: Attempt) -> Any:
    """The state; None when it failed."""
    try:
        return attempt.task.result()
    except Exception as error:
        log.info("%s could not give its state: %r", attempt.transfer, error)
        return None
