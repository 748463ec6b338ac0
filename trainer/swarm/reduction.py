"""The all-reduce of one group: checked parts, equal results, and a record of what failed.

Guards against hivemind 1.1.12, where one NaN in a part or in a reducer's reply reaches everybody,
a group whose weights are all 0 divides by 0, a partly failed all-reduce looks like a good one, and
each peer adds a difference to its own tensor, so that no two of them hold the same average.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import torch
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.averaging.partition import AllreduceException, BannedException, TensorPartReducer
from hivemind.compression import deserialize_torch_tensor, serialize_torch_tensor
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils.asyncio import aiter_with_timeout, amap_in_executor, attach_event_on_finished

LEAST_WEIGHT = 1e-9  # of an empty offer: no average moves by it, and no sum of weights is 0
MOST_WEIGHT = 1e12


@dataclass
class Traffic:
    """Payload bytes of one all-reduce."""

    bytes_in: int = 0
    bytes_out: int = 0


class CheckedReducer(TensorPartReducer):
    """Bans a sender whose part is not finite, has another shape, or comes with a bad weight."""

    async def accumulate_part(
        self, sender_index: int, part_index: int, tensor_part: torch.Tensor, weight: float = 1.0
    ) -> torch.Tensor:
        if not (
            math.isfinite(weight)
            and 0 <= weight <= MOST_WEIGHT
            and tensor_part.shape == self.part_shapes[part_index]
            and bool(torch.isfinite(tensor_part).all())
        ):
            raise BannedException(f"sender {sender_index} sent a part that is not usable")
        return await super().accumulate_part(
            sender_index, part_index, tensor_part, max(weight, LEAST_WEIGHT)
        )


class CheckedRunner(AllReduceRunner):
    """Exchanges averages themselves, so that all members end with the same numbers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.traffic = Traffic()
        self.failed_reducers: set[PeerID] = set()
        self.problem = ""
        self.tensor_part_container.return_deltas = False
        plain: TensorPartReducer = self.tensor_part_reducer  # type: ignore[has-type]
        plain.finished.set()  # never used: it has nothing to complain of
        self.tensor_part_reducer = CheckedReducer(plain.part_shapes, plain.num_senders)

    @property
    def num_parts(self) -> int:
        return sum(self.tensor_part_container.num_parts_by_peer)

    async def _communicate_with_peer(self, peer_id: PeerID) -> None:
        peer_index = self.ordered_peer_ids.index(peer_id)
        if peer_id == self.peer_id:
            await self._average_own_share(peer_index)
            return
        try:
            await self._exchange(peer_id, peer_index)
        except BaseException as error:
            self.problem = self.problem or repr(error)[:150]
            self.failed_reducers.add(peer_id)
            self.tensor_part_container.register_failed_reducer(peer_index)
            raise

    async def _average_own_share(self, peer_index: int) -> None:
        sender_index = self.sender_peer_ids.index(self.peer_id)
        for part_index, part in enumerate(self.parts_for_local_averaging):
            average = await self.tensor_part_reducer.accumulate_part(
                sender_index, part_index, part, weight=self.weight
            )
            self.tensor_part_container.register_processed_part(peer_index, part_index, average)

    async def _exchange(self, peer_id: PeerID, peer_index: int) -> None:
        """Sends our parts to a reducer, takes its averages. Raises AllreduceException."""
        container = self.tensor_part_container
        shapes = [part.shape for part, _ in container._input_parts_by_peer[peer_index]]
        done_sending = asyncio.Event()
        outgoing = attach_event_on_finished(self._counted_parts(peer_index), done_sending)
        stream = await self._get_peer_stub(peer_id).rpc_aggregate_part(outgoing)
        if self.should_delay_results(self.peer_id):
            await done_sending.wait()
        averages = amap_in_executor(
            _average_in,
            aiter_with_timeout(self._counted_replies(stream), self.reducer_timeout),
            max_prefetch=container.prefetch,
        )
        received = 0
        async with aclosing(averages):  # closes the stream: the reducer waits for it
            async for average in averages:
                if average.shape != shapes[received]:
                    raise AllreduceException("a reducer sent a part of another shape")
                container.register_processed_part(peer_index, received, average)
                received += 1
                if received == len(shapes):
                    break
        if received != len(shapes):
            raise AllreduceException(f"a reducer sent {received} of {len(shapes)} parts")

    async def _counted_parts(self, peer_index: int) -> AsyncIterator[averaging_pb2.AveragingData]:
        async for message in self._generate_input_for_peer(peer_index):
            self.traffic.bytes_out += len(message.tensor_part.buffer)
            yield message

    async def _counted_replies(
        self, stream: AsyncIterator[averaging_pb2.AveragingData]
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        async for message in stream:
            self.traffic.bytes_in += len(message.tensor_part.buffer)
            yield message

    async def _accumulate_parts_streaming(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], sender_index: int
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        """Our half as a reducer: a sender's parts in, the averages out."""
        part_index = 0
        try:
            async for part, weight, codec in amap_in_executor(
                lambda message: (
                    deserialize_torch_tensor(message.tensor_part),
                    message.weight,
                    message.tensor_part.compression,
                ),
                self._counted_replies(stream),
                max_prefetch=self.tensor_part_container.prefetch,
            ):
                try:
                    average = await self.tensor_part_reducer.accumulate_part(
                        sender_index, part_index, part, weight=weight
                    )
                except BannedException:
                    break
                part_index += 1
                reply = await asyncio.get_running_loop().run_in_executor(
                    None, serialize_torch_tensor, average, codec
                )
                self.traffic.bytes_out += len(reply.buffer)
                yield averaging_pb2.AveragingData(
                    code=averaging_pb2.AVERAGED_PART, tensor_part=reply
                )
        finally:
            if part_index != self.tensor_part_reducer.num_parts:
                await self._ban_sender(self.sender_peer_ids[sender_index])


def _average_in(message: averaging_pb2.AveragingData) -> torch.Tensor:
    if message.code != averaging_pb2.AVERAGED_PART:
        raise AllreduceException(averaging_pb2.MessageCode.Name(message.code))
    average = deserialize_torch_tensor(message.tensor_part)
    if not bool(torch.isfinite(average).all()):
        raise AllreduceException("a reducer sent an average that is not finite")
    return average
