"""One group on its way through matchmaking and the all-reduce.

Modelled: who meets whom, how long links take, who is lost half-way and what the others then hold.
Real: the shares (hivemind's load balancer), the reducer with all its checks, and the verdicts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from hivemind.averaging.load_balancing import load_balance_peers
from hivemind.averaging.partition import BannedException
from torch import Tensor

from trainer.recipe import Round
from trainer.simulator import links
from trainer.simulator.events import Task
from trainer.simulator.links import Link
from trainer.swarm.averager import SILENCE_S
from trainer.swarm.reduction import CheckedReducer
from trainer.swarm.verdict import Note, Verdict, read_notes
from trainer.wire import Outcome

if TYPE_CHECKING:
    from trainer.simulator.net import Net

CLOCKS_AGREE_S = 1.5  # hivemind's matchmaking: peers further apart never meet
MIN_VECTOR_SIZE = 0


@dataclass
class Seat:
    """One member's. `result` is what its averager returns, None while it waits."""

    name: str
    link: Link
    task: Task
    clock_wrong_s: float
    tensors: Sequence[Tensor]
    weight: float
    note: Note
    result: tuple[Verdict, list[Tensor]] | None = None

    def settle(self, verdict: Verdict, mean: Sequence[Tensor] = ()) -> None:
        if self.result is None:
            self.result = verdict, [tensor.clone() for tensor in mean]
            self.task.wake()


@dataclass
class Meeting:
    """Opened by the first to come; starts when `size` are there, or after matchmaking."""

    net: Net
    timing: Round
    round: int
    size: int
    opened_s: float
    seats: dict[str, Seat] = field(default_factory=dict)
    began_s: float | None = None
    duration_s: float = 0.0
    lost: list[str] = field(default_factory=list)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    _shares: dict[str, float] = field(default_factory=dict)

    def welcomes(self, seat: Seat) -> bool:
        first = next(iter(self.seats.values()), seat)
        apart_s = abs(first.clock_wrong_s - seat.clock_wrong_s)
        return self.began_s is None and self.round == seat.note.round and apart_s <= CLOCKS_AGREE_S

    def join(self, seat: Seat) -> None:
        self.seats[seat.name] = seat
        if len(self.seats) >= self.size:
            self.start()

    def lose(self, name: str) -> None:
        """It left, or went silent. Before the average it is simply not in it."""
        if name not in self.seats:
            return
        if self.began_s is None:
            del self.seats[name]
        elif name not in self.lost:
            self.lost.append(name)
            silence_s = min(SILENCE_S, self.timing.averaging_s / 3)
            done = (self.net.events.now - self.began_s) / max(self.duration_s, 1e-9)
            self.net.events.after(silence_s, lambda: self._finish(min(done, 1.0)))

    # ------------------------------------------------------------ the average
    def start(self) -> None:
        """With whoever is there now; called again, it changes nothing."""
        if self.began_s is not None:
            return
        self.began_s = self.net.events.now
        if len(self.seats) < 2:
            self._fail("nobody came to average with")
            return
        self._share_out()
        members = list(self.seats.values())
        shares = [self._shares[seat.name] for seat in members]
        self.duration_s = links.exchange_s([s.link for s in members], shares, self._vector_bytes())
        if self.duration_s > self.timing.averaging_s:
            self.duration_s = self.timing.averaging_s
            self.net.events.after(self.duration_s, lambda: self._fail("averaging failed: too slow"))
            return
        for seat in members:
            if seat.link.stalls and self.net.rng.random() < seat.link.stalls:
                at = self.duration_s * self.net.rng.random()
                self.net.events.after(at, lambda name=seat.name: self.lose(name))  # type: ignore[misc]
        self.net.events.after(self.duration_s, lambda: None if self.lost else self._finish(1.0))

    def _share_out(self) -> None:
        numbers = [None if seat.link.reachable else 0.0 for seat in self.seats.values()]
        total = sum(tensor.numel() for tensor in next(iter(self.seats.values())).tensors)
        if not any(number is None for number in numbers):
            numbers = [None] * len(numbers)
        parts = load_balance_peers(total, numbers, MIN_VECTOR_SIZE)
        for name, part in zip(self.seats, parts, strict=True):
            self._shares[name] = part / total

    def _vector_bytes(self) -> int:
        return 4 * sum(tensor.numel() for tensor in next(iter(self.seats.values())).tensors)

    def _fail(self, reason: str) -> None:
        if self not in self.net.meetings:
            return
        for seat in self.seats.values():
            self._settle(seat, Verdict(self.round, Outcome.FAILED, {}, reason=reason))
        self._close()

    def _finish(self, done: float) -> None:
        """`done` is how much of the vector had been exchanged when somebody was lost.

        A lost reducer leaves those without its share who had not got it yet; a lost sender is
        left out by every reducer.
        """
        if self not in self.net.meetings:
            return
        gathered: dict[str, object] = {
            name: seat.note.model_dump(mode="json") for name, seat in self.seats.items()
        }
        try:
            notes = read_notes(gathered, self.round)
        except ValueError as error:
            self._fail(str(error))
            return
        senders = [seat for name, seat in self.seats.items() if name not in self.lost]
        mean, banned = reduce(senders)
        short = any(self._shares[name] > 0 for name in self.lost)
        lost = tuple(sorted([*self.lost, *banned]))
        for name, seat in self.seats.items():
            cut_off = name in lost or (short and self.net.rng.random() >= done)
            moved = links.traffic_bytes(self._shares[name], len(self.seats), self._vector_bytes())
            verdict = Verdict(
                self.round,
                Outcome.PARTIAL if cut_off else Outcome.CLEAN,
                notes,
                lost=lost,
                failed_parts=int(cut_off),
                bytes_in=moved,
                bytes_out=moved,
                duration_s=self.net.events.now - self.opened_s,
                reason="a member was lost while averaging" if self.lost else "",
            )
            self._settle(seat, verdict, mean)
        self._close()

    def _settle(self, seat: Seat, verdict: Verdict, mean: Sequence[Tensor] = ()) -> None:
        self.verdicts[seat.name] = verdict
        seat.settle(verdict, mean)

    def _close(self) -> None:
        if self in self.net.meetings:
            self.net.meetings.remove(self)
            self.net.seen(self)


def reduce(senders: Sequence[Seat]) -> tuple[list[Tensor], list[str]]:
    """The mean by the real reducer, each tensor one part, and the names of those it banned."""
    return asyncio.run(_reduce(senders))


async def _reduce(senders: Sequence[Seat]) -> tuple[list[Tensor], list[str]]:
    shapes = [tensor.shape for tensor in senders[0].tensors]
    reducer = CheckedReducer(shapes, len(senders))
    banned: list[str] = []

    async def send(index: int, seat: Seat) -> list[Tensor]:
        means = []
        for part, tensor in enumerate(seat.tensors):
            try:
                mean = await reducer.accumulate_part(index, part, tensor, weight=seat.weight)
            except BannedException:
                banned.append(seat.name)
                reducer.on_sender_failed(index)
                return []
            means.append(mean.clone())
        return means

    results = await asyncio.gather(*(send(i, seat) for i, seat in enumerate(senders)))
    whole = [means for means in results if len(means) == len(shapes)]
    return whole[0] if whole else [torch.zeros(shape) for shape in shapes], sorted(banned)
