"""What one round made of its offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from pydantic import Field

from trainer.measures import Name
from trainer.recipe import MOST_CHOSEN
from trainer.wire import (
    Count,
    Line,
    Message,
    Outcome,
    Refusal,
    Role,
    Seconds,
    VerdictSummary,
)

FINGERPRINT_TOLERANCE = 1e-3
MOST_WITNESSED = 64  # a note is to stay under 4 KB
MOST_RECEIVED = 32
MOST_BROUGHT = 32


class Note(Message):
    """Travels with an offer and reaches every member. `loss_sum` is over `tokens` target tokens;
    `steps` are micro-batches, `extra` is the strategy's, and it was made `late` rounds ago.

    `fingerprint` is a few fixed projections of the parameters the round began with, the last one
    their length: equal peers have equal ones. `norm` is the offer's length (L2), `arrived_s` the
    time from the round's beginning to its first offer.

    The rest is what this member knows, for the common judgement: the most samples that others can
    have by their records (`seen`, by `short` names), whose offers are set aside and why, the usual
    norm and loss of the last rounds, the round whose parameters it can go back to, how fast it
    measured its link to be, and what it `received` from others in averages (Mbit/s, by `short`).
    `chosen` is whose turn it holds this round to be (`short` names; (): everybody's, None: it does
    not know), and `brought`, a coordinator's, what devices brought of late (`selection.py`).
    """

    round: Count
    role: Role
    samples: Count
    tokens: Count
    loss_sum: float
    steps: Count = 0
    late: Count = 0
    weight: float = Field(ge=0)
    norm: float = Field(ge=0)
    fingerprint: tuple[float, ...] = Field(max_length=16)
    arrived_s: Seconds = 0.0
    extra: dict[str, float] = {}
    seen: dict[str, Count] = Field({}, max_length=MOST_WITNESSED)
    barred: dict[str, Line] = Field({}, max_length=MOST_WITNESSED)
    usual_norm: float | None = Field(None, ge=0)
    usual_loss: float | None = None
    good_round: Count | None = None
    link_mbit_s: float | None = Field(None, ge=0)
    received: dict[str, Annotated[float, Field(ge=0)]] = Field({}, max_length=MOST_RECEIVED)
    chosen: tuple[Name, ...] | None = Field(None, max_length=MOST_CHOSEN)
    brought: dict[str, Annotated[float, Field(ge=0)]] = Field({}, max_length=MOST_BROUGHT)


def short(name: str) -> str:
    """The end of a peer id, enough to tell peers apart."""
    return name[-12:]


@dataclass(frozen=True)
class Verdict:
    """`notes` by peer id; `lost` are members that went silent while averaging, `refused` those
    whose offers were left out of it, and why; `struck` are those of them that reducers found.
    `shares`: which part of the vector each member averaged for the others; `weights`: what each
    offer that was not refused weighs in the average. `mean_norm` is the average's length, `told`
    what the strategy says of its state; both once it is applied.
    """

    round: int
    outcome: Outcome
    notes: dict[str, Note]
    lost: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    struck: tuple[str, ...] = ()
    shares: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    failed_parts: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    duration_s: float = 0.0
    reason: str = ""
    mean_norm: float | None = None
    told: str = ""

    @property
    def applies(self) -> bool:
        return self.outcome in (Outcome.CLEAN, Outcome.ALONE)

    @cached_property
    def offered(self) -> list[Note]:
        """Notes of the members whose samples are in the average."""
        left_out = {*self.lost, *self.refused}
        return [n for name, n in self.notes.items() if n.tokens and name not in left_out]

    @property
    def samples(self) -> int:
        return sum(note.samples for note in self.offered)

    @property
    def tokens(self) -> int:
        return sum(note.tokens for note in self.offered)

    @property
    def loss(self) -> float | None:
        """Mean over all target tokens of this round; what came late has met other parameters."""
        now = [note for note in self.offered if not note.late]
        tokens = sum(note.tokens for note in now)
        return sum(note.loss_sum for note in now) / tokens if tokens else None

    def say_of(self, name: str) -> float:
        """Which part of the average's weight that member's offer has; 0 where it is not in it."""
        taken = {n: w for n, w in self.weights.items() if n not in {*self.lost, *self.refused}}
        return taken.get(name, 0.0) / (sum(taken.values()) or 1.0)

    def summary(
        self,
        lost_before: Sequence[str] = (),
        asked: int | None = None,
        missed: float | None = None,
    ) -> VerdictSummary:
        """`lost_before` were lost in attempts at the same round that had to be repeated."""
        return VerdictSummary(
            round=self.round,
            outcome=self.outcome,
            members=len(self.offered),
            asked=asked,
            samples=self.samples,
            tokens=self.tokens,
            loss=self.loss,
            duration_s=self.duration_s,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            lost=tuple(dict.fromkeys([*lost_before, *self.lost]))[:64],
            refused=tuple(
                Refusal(peer=name, reason=why[:300]) for name, why in sorted(self.refused.items())
            )[:64],
            reason=self.reason[:300],
            mean_norm=self.mean_norm,
            told=self.told[:300],
            missed=missed,
        )


def deviates(own: Note, notes: dict[str, Note], coordinators: frozenset[str]) -> bool:
    """Whether our parameters differ from the coordinator's or, without one, from the middle."""
    marks = [note.fingerprint for name, note in notes.items() if name in coordinators]
    marks = marks[:1] or [note.fingerprint for note in notes.values()]
    if any(len(mark) != len(own.fingerprint) for mark in marks):
        return True
    middle = [sorted(values)[len(values) // 2] for values in zip(*marks, strict=True)]
    scale = max(abs(middle[-1]), 1e-12)
    return any(
        abs(mine - theirs) > FINGERPRINT_TOLERANCE * scale
        for mine, theirs in zip(own.fingerprint, middle, strict=True)
    )
