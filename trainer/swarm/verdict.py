"""What one round made of its offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field, ValidationError

from trainer.wire import Count, Message, Outcome, Role, Seconds, VerdictSummary

FINGERPRINT_TOLERANCE = 1e-3


class Note(Message):
    """Travels with an offer and reaches every member. `loss_sum` is over `tokens` target tokens.

    `fingerprint` is a few fixed projections of the parameters the round began with, the last one
    their length: equal peers have equal ones. `arrived_s` is the time from the round's beginning
    to its first offer.
    """

    round: Count
    role: Role
    samples: Count
    tokens: Count
    loss_sum: float
    fingerprint: tuple[float, ...] = Field(max_length=16)
    arrived_s: Seconds = 0.0
    extra: dict[str, float] = {}


@dataclass(frozen=True)
class Verdict:
    """`notes` by peer id; `lost` are members that failed while averaging."""

    round: int
    outcome: Outcome
    notes: dict[str, Note]
    lost: tuple[str, ...] = ()
    failed_parts: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    duration_s: float = 0.0
    reason: str = ""

    @property
    def applies(self) -> bool:
        return self.outcome in (Outcome.CLEAN, Outcome.ALONE)

    @cached_property
    def offered(self) -> list[Note]:
        """Notes of the members whose samples are in the average."""
        return [n for name, n in self.notes.items() if n.tokens and name not in self.lost]

    @property
    def samples(self) -> int:
        return sum(note.samples for note in self.offered)

    @property
    def tokens(self) -> int:
        return sum(note.tokens for note in self.offered)

    @property
    def loss(self) -> float | None:
        """Mean over all target tokens of the round."""
        tokens = self.tokens
        return sum(note.loss_sum for note in self.offered) / tokens if tokens else None

    def summary(self, lost_before: Sequence[str] = ()) -> VerdictSummary:
        """`lost_before` were lost in attempts at the same round that had to be repeated."""
        return VerdictSummary(
            round=self.round,
            outcome=self.outcome,
            members=len(self.offered),
            samples=self.samples,
            tokens=self.tokens,
            loss=self.loss,
            duration_s=self.duration_s,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            lost=tuple(dict.fromkeys([*lost_before, *self.lost]))[:64],
            reason=self.reason[:300],
        )


def read_notes(gathered: dict[str, object], round_number: int) -> dict[str, Note]:
    """Raises ValueError when a member's note is malformed or of another round."""
    notes = {}
    for name, content in gathered.items():
        try:
            note = Note.model_validate(content)
        except ValidationError as error:
            raise ValueError(f"a member's note is malformed: {error.errors()[0]['msg']}") from error
        if note.round != round_number:
            raise ValueError(f"a member is in round {note.round}, not {round_number}")
        notes[name] = note
    return notes


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
