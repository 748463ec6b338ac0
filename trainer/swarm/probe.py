"""How fast the link to another peer is: bytes for half a second each way, counted as they arrive.

Guards against hivemind 1.1.12, which believes whatever bandwidth a peer declares. An average tells
little of a link: all of its members go at the pace of the slowest. So a link is measured while
nothing else is on it, with a coordinator at first and after averages with some of the group, and
bytes are counted where they arrive: what a sender hands to its own buffers proves nothing.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Any, AsyncIterator, NamedTuple  # noqa: UP035 - hivemind reads this name

from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2, runtime_pb2
from hivemind.utils import MPFuture
from hivemind.utils.asyncio import aiter_with_timeout

from trainer.swarm.bandwidth import LinkMeter
from trainer.swarm.linger import until_closed

EVERY_S = 120.0
BLOCK_BYTES = 1 << 16
LEAST_BLOCKS, MOST_BLOCKS = 4, 64
LONGEST_S = 0.5
PATIENCE_S = 10.0
LONGEST_WAIT_S = 60.0
MOST_AT_ONCE = 4
PAUSE_S = 1.0  # after an average, at most: the group's members do not all measure at once
LAST = b"last"
log = logging.getLogger(__name__)
Blocks = AsyncIterator[averaging_pb2.DownloadData]


class LinkProbe:
    """The half of the averager that measures links and lets others measure theirs."""

    peer_id: PeerID
    prefix: str
    serializer: Any
    _p2p: Any

    def install_meter(self, meter: LinkMeter) -> None:
        """Before the averaging process starts: from then on `meter` is that process's own."""
        self._meter = meter
        self._one_at_a_time = asyncio.Lock()
        self._speed = multiprocessing.Value("d", 0.0)
        self.show_speed()
        self._measured_at = float("-inf")
        self._measuring: asyncio.Task[None] | None = None

    @property
    def link_mbit_s(self) -> float | None:
        """As measured, None while it is not; in any process."""
        return self._speed.value or None

    def show_speed(self) -> None:
        """What `link_mbit_s` is from now on."""
        self._speed.value = self._meter.speed() or 0.0

    async def _measure_link(self, future: MPFuture, names: Sequence[str]) -> None:
        """With these peers; does not keep the caller waiting."""
        self.measure_soon([PeerID.from_base58(name) for name in names])
        future.set_result(None)

    def measure_soon(self, peers: Sequence[PeerID]) -> None:
        self._measuring = asyncio.create_task(self._measure_with(peers))

    def stop_measuring(self) -> None:
        """An average needs the link now."""
        if self._measuring is not None:
            self._measuring.cancel()

    async def _measure_with(self, peers: Sequence[PeerID]) -> None:
        """Unless that was done lately. Fails in silence: it is tried again after an average."""
        if not peers or time.monotonic() - self._measured_at < EVERY_S:
            return
        try:
            await asyncio.sleep(random.uniform(0, PAUSE_S))  # noqa: S311 - spreads, hides nothing
            chosen = random.sample(peers, min(len(peers), MOST_AT_ONCE))
            await asyncio.wait_for(self._measure(chosen), LONGEST_WAIT_S)
            self._measured_at = time.monotonic()
        except Exception as error:  # whatever is wrong with one peer, others may answer
            log.info("The link could not be measured: %r", error)

    async def _measure(self, peers: Sequence[PeerID]) -> None:
        """With all at once, for the link may be faster than that of each.

        Each of them lets one peer after the other measure, so they are asked in one order: no two
        peers can wait for each other.
        """
        start = asyncio.Event()
        async with AsyncExitStack() as stack:
            streams = []
            for peer in sorted(peers):
                stub = self.get_stub(self._p2p, peer, namespace=self.prefix)  # type: ignore[attr-defined]
                stream = await stub.rpc_measure_link(_once(start))
                await stack.enter_async_context(aclosing(stream))
                streams.append(aiter_with_timeout(stream, PATIENCE_S))
                await anext(streams[-1])
            start.set()
            began = time.monotonic()
            told = await asyncio.gather(*(anext(stream) for stream in streams))
            ended = time.monotonic()
            counts = await asyncio.gather(*(_count(stream) for stream in streams))
        sent = sum(int(self.serializer.loads(message.metadata)) for message in told)
        self._meter.measured("up", sent, ended - began)
        first, last = min(c.first for c in counts), max(c.last for c in counts)
        self._meter.measured("down", sum(c.num_bytes for c in counts), last - first)
        self.show_speed()

    async def rpc_measure_link(
        self, stream: AsyncIterator[averaging_pb2.DownloadData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        """One caller after the other, each of which waits for our first word."""
        async with self._one_at_a_time:
            with suppress(TimeoutError):  # it went away, or an average came between
                async for message in until_closed(self._let_measure(stream)):
                    yield message

    async def _let_measure(self, stream: Blocks) -> Blocks:
        sent = aiter_with_timeout(stream, PATIENCE_S)
        await anext(sent, None)
        yield averaging_pb2.DownloadData()
        counted = await _count(sent)
        yield averaging_pb2.DownloadData(metadata=self.serializer.dumps(counted.num_bytes))
        async for block in _blocks():
            yield block


async def _once(ready: asyncio.Event) -> Blocks:
    yield averaging_pb2.DownloadData()
    await asyncio.wait_for(ready.wait(), PATIENCE_S)
    async for block in _blocks():
        yield block


async def _blocks() -> Blocks:
    """For `LONGEST_S`, in which buffers let through a little more than the link does."""
    part = runtime_pb2.Tensor(buffer=os.urandom(BLOCK_BYTES))
    until = time.monotonic() + LONGEST_S
    for number in range(MOST_BLOCKS):
        if number >= LEAST_BLOCKS and time.monotonic() > until:
            break
        yield averaging_pb2.DownloadData(tensor_part=part)
    yield averaging_pb2.DownloadData(tensor_part=part, metadata=LAST)


class _Count(NamedTuple):
    """Bytes after the first block, and when that one and the last one came."""

    num_bytes: int
    first: float
    last: float


async def _count(blocks: Blocks) -> _Count:
    num_bytes, first, now = 0, None, time.monotonic()
    async for block in blocks:
        now = time.monotonic()
        if first is None:
            first = now
        else:
            num_bytes += len(block.tensor_part.buffer)
        if block.metadata == LAST or num_bytes > MOST_BLOCKS * BLOCK_BYTES:
            break
    return _Count(num_bytes, now if first is None else first, now)
