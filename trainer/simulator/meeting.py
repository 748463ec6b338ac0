"""One group on its way through matchmaking and the all-reduce.

Modelled: who meets whom, how long links take, who is lost half-way and what the others then hold.
Real: the shares, the judgement of the notes, the reducer with all its
checks, and each member's verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

from trainer.recipe import CODEC_BYTES, Round
from trainer.simulator import links
from trainer.simulator.events import Task
from trainer.simulator.links import Link
from trainer.simulator.reduction import reduce
from trainer.swarm.averager import SILENCE_S
from trainer.swarm.bandwidth import share_out
from trainer.swarm.conclusion import Course, conclude, reducing_speeds, void
from trainer.swarm.judgement import Judgement, Limits, judge
from trainer.swarm.verdict import Note, Verdict
from trainer.wire import Outcome

if TYPE_CHECKING:
    from trainer.simulator.net import Net

CLOCKS_AGREE_S = 1.5  # hivemind's matchmaking: peers further apart never meet


@dataclass(frozen=True)
class Rules:
    """Of the recipe, for every meeting of the swarm."""

    timing: Round
    limits: Limits
    coordinators: frozenset[str]


@dataclass
class Seat:
    """One member's. `result` is what its averager returns, None while it waits."""

    name: str
    link: Link
    task: Task
    clock_wrong_s: float
    tensors: Sequence[Tensor]
    note: Note
    result: tuple[Verdict, list[Tensor]] | None = None

    def settle(self, verdict: Verdict, mean: Sequence[Tensor] = ()) -> None:
        if self.result is None:
            self.result = verdict, [tensor.clone() for tensor in mean]
            self.task.wake()


@dataclass
class Meeting:
    """Opened by the first to come; starts when all that it expects are there, or after a while."""

    net: Net
    rules: Rules
    round: int
    expected: set[str]
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
        """Somebody who was not expected takes nobody's place."""
        if self.seats and self.expected:
            self.expected.add(seat.name)
        self.seats[seat.name] = seat
        if self.expected and len(self.seats) > len(self.expected):
            self.start()

    def lose(self, name: str) -> None:
        """It left, or went silent. Before the average it is simply not in it."""
        if name not in self.seats:
            return
        if self.began_s is None:
            del self.seats[name]
        elif name not in self.lost:
            self.lost.append(name)
            silence_s = min(SILENCE_S, self.rules.timing.averaging_s / 3)
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
        if nothing := self._share_out():
            self._fail(**nothing)
            return
        members = list(self.seats.values())
        shares = [self._shares[seat.name] for seat in members]
        self.duration_s = links.exchange_s([s.link for s in members], shares, self._vector_bytes())
        if self.duration_s > self.rules.timing.averaging_s:
            self.duration_s = self.rules.timing.averaging_s
            self.net.events.after(self.duration_s, lambda: self._fail("averaging failed: too slow"))
            return
        for seat in members:
            if seat.link.stalls and self.net.rng.random() < seat.link.stalls:
                at = self.duration_s * self.net.rng.random()
                self.net.events.after(at, lambda name=seat.name: self.lose(name))  # type: ignore[misc]
        self.net.events.after(self.duration_s, lambda: None if self.lost else self._finish(1.0))

    def _judge(self) -> Judgement:
        gathered = {name: seat.note.model_dump(mode="json") for name, seat in self.seats.items()}
        return judge(gathered, self.round, self.rules.limits, self.rules.coordinators)

    def _share_out(self) -> dict[str, Any] | None:
        """The verdict's fields where there is nothing to average, or nobody who may."""
        senders = [not seat.link.reachable for seat in self.seats.values()]
        alone = self.rules.coordinators if self.rules.timing.averaged_by == "coordinator" else None
        judgement = self._judge()
        speeds = reducing_speeds(judgement, senders, list(self.seats), alone)
        if nothing := void(judgement, speeds, self.rules.limits):
            return nothing
        total = sum(tensor.numel() for tensor in next(iter(self.seats.values())).tensors)
        parts = share_out(total, speeds)
        self._shares = {n: part / total for n, part in zip(self.seats, parts, strict=True)}
        return None

    def _vector_bytes(self) -> int:
        count = sum(tensor.numel() for tensor in next(iter(self.seats.values())).tensors)
        return int(CODEC_BYTES[self.rules.timing.codec] * count)

    def _fail(self, reason: str, **fields: Any) -> None:
        """`fields` are more of the verdict's."""
        if self not in self.net.meetings:
            return
        verdict = {"outcome": Outcome.FAILED, "notes": {}, **fields}
        for seat in self.seats.values():
            self._settle(seat, Verdict(self.round, reason=reason, **verdict))
        self._close()

    def _finish(self, done: float) -> None:
        """`done` is how much of the vector had been exchanged when somebody was lost.

        A lost reducer leaves those without its share who had not got it yet; a lost sender is
        left out by every reducer.
        """
        if self not in self.net.meetings:
            return
        if len(self.lost) == len(self.seats):
            self._fail("all members were lost")
            return
        judgement = self._judge()
        names = list(self.seats)
        shares = [self._shares[name] for name in names]
        present = {n: seat.tensors for n, seat in self.seats.items() if n not in self.lost}
        mean, report, faults = reduce(present, names, judgement, self.rules.timing.codec)
        short = {name for name in self.lost if self._shares[name] > 0}
        for name, seat in self.seats.items():
            late = short if short and self.net.rng.random() >= done else set()
            missing = set(names) - {name} if name in self.lost else late
            moved = links.traffic_bytes(self._shares[name], len(self.seats), self._vector_bytes())
            course = Course(
                reports=[report],
                refused=faults.get(name),
                failed_reducers=missing,
                failed_parts=len(missing),
                problem="silence" if missing else "",
                bytes_in=moved,
                bytes_out=moved,
            )
            fields = conclude(name, names, judgement, shares, course, self.rules.limits)
            duration_s = self.net.events.now - self.opened_s
            self._settle(seat, Verdict(self.round, duration_s=duration_s, **fields), mean)
        self._close()

    def _settle(self, seat: Seat, verdict: Verdict, mean: Sequence[Tensor] = ()) -> None:
        self.verdicts[seat.name] = verdict
        seat.settle(verdict, mean)

    def _close(self) -> None:
        if self in self.net.meetings:
            self.net.meetings.remove(self)
            self.net.seen(self)
