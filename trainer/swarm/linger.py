"""Keeps the end of an answer from being lost.

Guards against hivemind 1.1.12, which closes a stream as soon as its handler has sent its last
message: p2pd then resets the stream, and what the other side has not read yet is gone. On a busy
machine one healthy average in fifty was partial by this. Here the side that reads knows when it
has all and closes; the side that writes waits for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

LONGEST_S = 5.0
Sent = TypeVar("Sent")


async def until_closed(messages: AsyncIterator[Sent]) -> AsyncIterator[Sent]:
    """All `messages`, then nothing until the reader closes (which cancels us) or is gone."""
    async for message in messages:
        yield message
    await asyncio.sleep(LONGEST_S)
