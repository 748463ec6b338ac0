"""A newcomer takes the current state from a peer: checked, bounded, from another donor on failure.

Guards against hivemind 1.1.12, whose download accepts any number, shape and value of tensors, has
no limit of size, blocks its event loop on the DHT, and dies of a donor that goes away.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import aclosing
from typing import Any, AsyncIterator  # noqa: UP035 - hivemind reads this name

import torch
from hivemind.compression import deserialize_torch_tensor
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MPFuture
from hivemind.utils.asyncio import aiter_with_timeout
from hivemind.utils.streaming import combine_from_streaming
from hivemind.utils.timed_storage import ValueWithExpiration

from trainer.swarm.linger import until_closed

MOST_DONORS = 4
log = logging.getLogger(__name__)
State = tuple[int, list[torch.Tensor]]


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
        _, tensors = source()
        self._shapes = [tensor.shape for tensor in tensors]

    def get_current_state(self) -> tuple[dict[str, int], list[torch.Tensor], None]:
        metadata, tensors = self._state_source()
        return metadata, tensors, None

    def fetch_state(self, at_least: int, timeout_s: float) -> State | None:
        """The newest state of round `at_least` or later that a peer gives us, else None."""
        future: MPFuture = MPFuture()
        self._outer_pipe.send(  # type: ignore[attr-defined]
            ("_fetch_state", [], {"future": future, "at_least": at_least})
        )
        try:
            return future.result(timeout=timeout_s)
        except FutureTimeout:
            future.cancel()
            return None

    async def _fetch_state(self, future: MPFuture, at_least: int) -> None:
        found: State | None = None
        try:
            for donor in await self._donors(at_least):
                try:
                    found = await self._download(donor, at_least)
                    break
                except Exception as error:  # whatever is wrong with one donor, the next may do
                    log.info("%s could not give its state: %r", donor, error)
                    await asyncio.sleep(0.2)
        finally:
            if not future.done():
                future.set_result(found)

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

    async def _download(self, donor: PeerID, at_least: int) -> State:
        stub = self.get_stub(self._p2p, donor, namespace=self.prefix)  # type: ignore[attr-defined]
        stream = await stub.rpc_download_state(averaging_pb2.DownloadRequest())
        missing_bytes = sum(shape.numel() for shape in self._shapes) * 4
        metadata: Any = None
        pieces: list[Any] = []
        tensors: list[torch.Tensor] = []
        async with aclosing(stream):  # the donor waits for it
            async for message in aiter_with_timeout(stream, self.next_chunk_timeout):  # type: ignore[attr-defined]
                if message.metadata:
                    metadata = self.serializer.loads(message.metadata)
                if message.tensor_part.dtype and pieces:
                    tensors.append(deserialize_torch_tensor(combine_from_streaming(pieces)))
                    pieces = []
                pieces.append(message.tensor_part)
                missing_bytes -= len(message.tensor_part.buffer)
                if missing_bytes <= 0:
                    break
        if missing_bytes:
            raise BadState(f"it is {abs(missing_bytes)} bytes too short or too long")
        tensors.append(deserialize_torch_tensor(combine_from_streaming(pieces)))
        return check_state(metadata, tensors, self._shapes, at_least)

    async def rpc_download_state(
        self, _request: averaging_pb2.DownloadRequest, _context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        messages = super().rpc_download_state(_request, _context)  # type: ignore[misc]
        async for message in until_closed(messages):
            yield message


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
