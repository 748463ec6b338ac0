"""A newcomer takes the current state from a peer: checked, bounded, from the best of the donors.

Guards against hivemind 1.1.12, whose download accepts any number, shape and value of tensors, has
no limit of size, blocks its event loop on the DHT, and dies of a donor that goes away.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import AsyncExitStack, aclosing
from typing import Any, AsyncIterator  # noqa: UP035 - hivemind reads this name

import torch
from hivemind.compression import deserialize_torch_tensor
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MPFuture
from hivemind.utils.asyncio import aiter_with_timeout
from hivemind.utils.streaming import combine_from_streaming
from hivemind.utils.timed_storage import ValueWithExpiration

from trainer.swarm.donors import take_from_best
from trainer.swarm.linger import until_closed

MOST_DONORS = 8
MOST_SERVED = 4  # newcomers at once
SECOND_THOUGHTS_S = 1.0  # in which a newcomer may turn to an idle donor
SPARE_S = 5.0
LOOK_EVERY_S = 0.25
log = logging.getLogger(__name__)
State = tuple[int, list[torch.Tensor]]


class Busy(Exception):
    """A donor gives to as many as it can."""


class BadState(ValueError):
    """A donor's state is not one of this recipe; says what is wrong with it."""


class StateDownload:
    """The half of the averager that serves and fetches states. A state is a round and tensors."""

    dht: Any
    serializer: Any
    _p2p: Any

    def install_state(
        self, source: Callable[[], tuple[dict[str, int], list[torch.Tensor]]]
    ) -> None:
        """`source` returns copies; it is called in the main process, on a thread of its own."""
        self._state_source = source
        self._num_served = 0
        _, tensors = source()
        self._shapes = [tensor.shape for tensor in tensors]

    def get_current_state(self) -> tuple[dict[str, int], list[torch.Tensor], None]:
        metadata, tensors = self._state_source()
        return metadata, tensors, None

    def fetch_state(
        self, at_least: int, timeout_s: float, is_wanted: Callable[[], bool]
    ) -> State | None:
        """The state of round `at_least` or later that a peer gives us within `timeout_s`, or None.

        The newest is asked for first, but rather an older one soon than a newer one slowly.
        `is_wanted` is asked several times a second.
        """
        future: MPFuture = MPFuture()
        what = {"future": future, "at_least": at_least, "timeout_s": timeout_s}
        self._outer_pipe.send(("_fetch_state", [], what))  # type: ignore[attr-defined]
        deadline = time.monotonic() + timeout_s + SPARE_S
        while is_wanted() and time.monotonic() < deadline:
            try:
                return future.result(timeout=LOOK_EVERY_S)
            except FutureTimeout:
                continue
        future.cancel()
        return None

    async def _fetch_state(self, future: MPFuture, at_least: int, timeout_s: float) -> None:
        taking = asyncio.create_task(self._take_state(at_least))
        until = time.monotonic() + timeout_s
        while not taking.done() and not future.cancelled() and time.monotonic() < until:
            await asyncio.wait({taking}, timeout=LOOK_EVERY_S)
        taking.cancel()  # also the donors' side, which waits for nobody then
        [found] = await asyncio.gather(taking, return_exceptions=True)
        if isinstance(found, BaseException):
            log.info("no peer could give its state: %r", found)
        if not future.done():
            future.set_result(None if isinstance(found, BaseException) else found)

    async def _take_state(self, at_least: int) -> State | None:
        donors = await self._donors(at_least)
        return await take_from_best([StateTransfer(self, donor, at_least) for donor in donors])

    async def _donors(self, at_least: int) -> list[PeerID]:
        """Newest round first, in random order among equals."""
        key = f"{self.prefix}.all_averagers"  # type: ignore[attr-defined]
        found = await self.dht.get(key, latest=True, return_future=True)
        rounds = {
            PeerID(name): entry.value
            for name, entry in (found.value.items() if found is not None else ())
            if isinstance(entry, ValueWithExpiration) and isinstance(entry.value, int | float)
        }
        rounds.pop(self.peer_id, None)  # type: ignore[attr-defined]
        donors = [name for name, number in rounds.items() if number >= at_least]
        random.shuffle(donors)
        return sorted(donors, key=lambda name: rounds[name], reverse=True)[:MOST_DONORS]

    async def rpc_download_state(
        self, _request: averaging_pb2.DownloadRequest, _context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        """First how many others we serve; who has a better choice then closes the stream."""
        others = self._num_served
        self._num_served += 1
        try:
            first = self.serializer.dumps({"serves": others})
            yield averaging_pb2.DownloadData(metadata=first)
            if others:
                await asyncio.sleep(SECOND_THOUGHTS_S)
            if others < MOST_SERVED:
                messages = super().rpc_download_state(_request, _context)  # type: ignore[misc]
                async for message in until_closed(messages):
                    yield message
        finally:
            self._num_served -= 1


class StateTransfer:
    """A `donors.Transfer`."""

    def __init__(self, averager: Any, donor: PeerID, at_least: int) -> None:
        self._averager, self._donor, self._at_least = averager, donor, at_least
        self._stack = AsyncExitStack()
        self._shapes = averager._shapes
        self.received_bytes, self.missing_bytes = 0, _bytes_of(self._shapes)

    def __str__(self) -> str:
        return str(self._donor)

    async def begin(self) -> int:
        """Raises Busy where it serves as many as it can."""
        self.received_bytes, self.missing_bytes = 0, _bytes_of(self._shapes)
        one = self._averager
        stub = one.get_stub(one._p2p, self._donor, namespace=one.prefix)
        stream = await stub.rpc_download_state(averaging_pb2.DownloadRequest())
        await self._stack.enter_async_context(aclosing(stream))  # the donor waits for it
        self._messages = aiter_with_timeout(stream, one.next_chunk_timeout)
        first = one.serializer.loads((await anext(self._messages)).metadata)
        others = first.get("serves") if isinstance(first, dict) else None
        if not isinstance(others, int) or not 0 <= others < MOST_SERVED:
            raise Busy(f"it serves {others} others already")
        return others

    async def finish(self) -> State:
        metadata: Any = None
        pieces: list[Any] = []
        tensors: list[torch.Tensor] = []
        async for message in self._messages:
            if message.metadata:
                metadata = self._averager.serializer.loads(message.metadata)
            if message.tensor_part.dtype and pieces:
                tensors.append(deserialize_torch_tensor(combine_from_streaming(pieces)))
                pieces = []
            pieces.append(message.tensor_part)
            self.received_bytes += len(message.tensor_part.buffer)
            self.missing_bytes -= len(message.tensor_part.buffer)
            if self.missing_bytes <= 0:
                break
        await self.close()
        if self.missing_bytes:
            raise BadState(f"it is {abs(self.missing_bytes)} bytes too short or too long")
        tensors.append(deserialize_torch_tensor(combine_from_streaming(pieces)))
        return check_state(metadata, tensors, self._shapes, self._at_least)

    async def close(self) -> None:
        await self._stack.aclose()


def _bytes_of(shapes: Sequence[torch.Size]) -> int:
    """As fp32."""
    return sum(shape.numel() for shape in shapes) * 4


def check_state(
    metadata: Any, tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size], at_least: int
) -> State:
    """Raises BadState unless round, number, shapes and values of the tensors are right."""
    number = metadata.get("round") if isinstance(metadata, dict) else None
    if not isinstance(number, int) or number < at_least:
        raise BadState(f"it is of round {number}, wanted is {at_least} or later")
    if len(tensors) != len(shapes):
        raise BadState(f"it has {len(tensors)} tensors instead of {len(shapes)}")
    for tensor, shape in zip(tensors, shapes, strict=True):
        if tensor.shape != shape:
            raise BadState(f"a tensor has shape {tuple(tensor.shape)} instead of {tuple(shape)}")
        if not bool(torch.isfinite(tensor).all()):
            raise BadState("it holds a value that is not finite")
    return number, [tensor.detach().clone() for tensor in tensors]
