"""One reducer's share of an average.

Guards against hivemind 1.1.12, where each sender says itself how much its parts weigh, a part that
is not finite or of another shape is added like any other, and a group whose weights are all 0
divides by 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from hivemind.averaging.partition import TensorPartReducer
from hivemind.proto import runtime_pb2

from trainer.swarm.codec import Codec, Fault, Unusable

LONGER = 1.05  # than declared, by which an offer may be because of its encoding


@dataclass(frozen=True)
class Entry:
    """What the verdict lets one sender put in: its share of all weights, and its length (L2)."""

    share: float
    norm: float


@dataclass(frozen=True)
class Average:
    """One part as everybody gets it, the reducer included."""

    tensor: torch.Tensor
    message: runtime_pb2.Tensor


class CheckedReducer(TensorPartReducer):
    """Averages with the weights of the notes; refuses a part that is not what its note promised."""

    def __init__(
        self, part_shapes: Sequence[torch.Size], entries: Sequence[Entry], codec: Codec
    ) -> None:
        super().__init__(part_shapes, len(entries))
        self._entries, self._codec = entries, codec
        self._squares = [0.0] * len(entries)

    async def accumulate_part(
        self, sender_index: int, part_index: int, tensor_part: torch.Tensor, weight: float = 1.0
    ) -> Average:
        """Raises Unusable, or BannedException for a sender that was banned meanwhile."""
        entry = self._entries[sender_index]
        if tensor_part.shape != self.part_shapes[part_index]:
            raise Unusable(Fault.SHAPE)
        if not bool(torch.isfinite(tensor_part).all()):
            raise Unusable(Fault.NOT_FINITE)
        if entry.share > 0:
            self._squares[sender_index] += float(tensor_part.double().square().sum())
            if math.sqrt(self._squares[sender_index]) > entry.norm * LONGER:
                raise Unusable(Fault.NORM)
        average: Average = await super().accumulate_part(
            sender_index, part_index, tensor_part, entry.share
        )
        return average

    def check_current_part_finished(self) -> None:
        if self.current_part_accumulated_from == self.num_current_senders:
            total = self.accumulator
            if self.denominator > 0:  # else all offers are empty: their average is 0
                total.div_(self.denominator)
            message = self._codec.compress(total)
            self.current_part_future.set_result(Average(self._codec.extract(message), message))
            self.reset_accumulators()
