"""The average of one meeting by the real reducer, each tensor one part."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import torch
from hivemind.averaging.partition import BannedException
from torch import Tensor

from trainer.swarm.codec import Codec, Fault, Unusable
from trainer.swarm.conclusion import entries
from trainer.swarm.judgement import Judgement
from trainer.swarm.reducer import CheckedReducer, Entry
from trainer.swarm.report import Failure, ReducerReport


def reduce(
    offers: Mapping[str, Sequence[Tensor]], names: Sequence[str], judgement: Judgement, codec: str
) -> tuple[list[Tensor], ReducerReport, dict[str, Fault]]:
    """The mean, the reducer's report, and what it had against whom.

    Those of `names` that made no offer went silent before their first part.
    """

    async def run() -> tuple[list[Tensor], ReducerReport, dict[str, Fault]]:
        return await _Reduction(offers, names, judgement, Codec(codec)).run()

    return asyncio.run(run())


class _Reduction:
    """Made inside the event loop that it runs in: hivemind's reducer holds futures."""

    def __init__(
        self,
        offers: Mapping[str, Sequence[Tensor]],
        names: Sequence[str],
        judgement: Judgement,
        codec: Codec,
    ) -> None:
        self._offers, self._names, self._codec = offers, names, codec
        self._shapes = [tensor.shape for tensor in next(iter(offers.values()))]
        self._entries = entries(judgement, names)
        taken = [entry or Entry(0.0, 0.0) for entry in self._entries]
        self._reducer = CheckedReducer(self._shapes, taken, codec)
        self._failed: dict[int, Failure] = {}
        self._faults: dict[str, Fault] = {}

    async def run(self) -> tuple[list[Tensor], ReducerReport, dict[str, Fault]]:
        for place, name in enumerate(self._names):
            if self._entries[place] is None:
                self._reducer.on_sender_failed(place)
            elif name not in self._offers:
                self._fail(place, None)
        sending = (self._send(place, name) for place, name in enumerate(self._names))
        means = [mean for mean in await asyncio.gather(*sending) if mean]
        nothing = [torch.zeros(shape) for shape in self._shapes]
        return means[0] if means else nothing, ReducerReport(failed=self._failed), self._faults

    async def _send(self, place: int, name: str) -> list[Tensor]:
        """All averaged parts as this sender gets them; [] when it was refused or is silent."""
        averages = []
        for part, tensor in enumerate(self._offers.get(name, ())):
            try:
                average = await self._reducer.accumulate_part(
                    place, part, self._codec.as_received(tensor)
                )
            except BannedException:
                return []
            except Unusable as error:
                self._faults[name] = error.fault
                self._fail(place, error.fault)
                return []
            averages.append(average.tensor)
        return averages

    def _fail(self, place: int, fault: Fault | None) -> None:
        parts = self._reducer.num_parts_received[place]
        self._failed.setdefault(place, Failure(parts=parts, fault=fault))
        self._reducer.on_sender_failed(place)
