"""What a rehearsal has seen, as it happens and added up in the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.simulator.meeting import Meeting
from trainer.wire import Body, Outcome, Receipt, RoundSeen, VerdictSummary


@dataclass(frozen=True)
class Attempt:
    """One round, or an attempt at it that has to be repeated. `at_s` is simulated."""

    round: int
    outcome: Outcome
    members: int
    samples: int
    loss: float | None
    at_s: float
    lost: tuple[str, ...] = ()


@dataclass
class Ledger:
    """`witnessed` are the rounds that the coordinator applied: what is in the model. `undone` are
    those after which all went back to earlier parameters.
    """

    tell: Callable[[Attempt], None]
    witnessed: dict[int, Attempt] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)
    attempts: Counter[str] = field(default_factory=Counter)
    _verdicts: dict[int, VerdictSummary] = field(default_factory=dict)
    _receipts: list[tuple[str, Receipt]] = field(default_factory=list)
    _members: dict[tuple[int, ...], dict[str, int]] = field(default_factory=dict)
    _refusals: Counter[str] = field(default_factory=Counter)

    def report(self, name: str, body: Body, at_s: float) -> None:
        if isinstance(body, Receipt):
            self._receipts.append((name, body))
        elif isinstance(body, RoundSeen):
            self._witness(body.verdict, at_s)

    def _witness(self, seen: VerdictSummary, at_s: float) -> None:
        """A round that was applied or undone, or an attempt in which an offer was refused."""
        attempt = Attempt(
            seen.round, seen.outcome, seen.members, seen.samples, seen.loss, at_s, seen.lost
        )
        self.attempts[seen.outcome] += 1
        self._refusals.update(f"{one.peer}: {_without_numbers(one.reason)}" for one in seen.refused)
        if seen.outcome is Outcome.UNDONE:
            self.undone.add(seen.round)
        elif seen.outcome is not Outcome.FAILED:
            self._verdicts[seen.round] = seen
            self.witnessed[seen.round] = attempt
        self.tell(attempt)

    def meeting(self, meeting: Meeting, witness: str) -> None:
        """A group's attempt is over, whatever came of it."""
        applied = [each for each in meeting.verdicts.values() if each.applies]
        verdict = meeting.verdicts.get(witness)
        if applied:
            left_out = {*applied[0].lost, *applied[0].refused}
            offered = {n: x.samples for n, x in applied[0].notes.items() if n not in left_out}
            self._members[_figures(applied[0].summary())] = offered
        if verdict is not None and verdict.outcome is Outcome.PARTIAL:
            self.attempts[Outcome.PARTIAL] += 1
            count, samples, at_s = len(verdict.offered), verdict.samples, meeting.net.events.now
            lost = tuple(meeting.lost)
            self.tell(Attempt(meeting.round, verdict.outcome, count, samples, None, at_s, lost))

    def sums(self) -> dict[str, Any]:
        """Samples: all that are in the model, and for whom there is a receipt.

        `without_receipt` were averaged, but their peer ended or was cut off before it knew.
        `elsewhere` have a receipt of a round that the swarm saw otherwise.
        """
        accepted = [(name, r) for name, r in self._receipts if r.accepted]
        verdicts = {**self._unwitnessed([r.verdict for _, r in accepted]), **self._verdicts}
        booked = {(n, r.round): r for n, r in accepted if _agree(verdicts.get(r.round), r.verdict)}
        silent = sum(
            samples
            for number, verdict in verdicts.items()
            for name, samples in self._members.get(_figures(verdict), {}).items()
            if (name, number) not in booked
        )
        receipts = sum(receipt.samples for receipt in booked.values())
        return {
            "in_the_model": sum(verdict.samples for verdict in verdicts.values()),
            "receipts": receipts,
            "without_receipt": silent,
            "elsewhere": sum(r.samples for _, r in accepted) - receipts,
            "released": sum(r.samples for _, r in self._receipts if not r.accepted),
        }

    def _unwitnessed(self, told: Sequence[VerdictSummary]) -> dict[int, VerdictSummary]:
        """Rounds that most of their members applied while the coordinator was cut off: it took
        their outcome with the next state."""
        last = max(self._verdicts, default=0)
        missed = [v for v in told if v.round < last and v.round not in self.undone]
        most: dict[int, VerdictSummary] = {}
        for number in {verdict.round for verdict in missed}:
            same = [verdict for verdict in missed if verdict.round == number]
            most[number] = max(same, key=lambda verdict: sum(_agree(verdict, v) for v in same))
        return most

    def refusals(self) -> dict[str, int]:
        reasons = Counter(_without_numbers(r.reason) for _, r in self._receipts if not r.accepted)
        return dict(sorted((reasons + self._refusals).items()))

    def bytes_moved(self) -> int:
        """By all members of all rounds in the model, sent."""
        return sum(receipt.verdict.bytes_out for _, receipt in self._receipts if receipt.accepted)


def _figures(verdict: VerdictSummary) -> tuple[int, ...]:
    """What tells the attempts at one round apart."""
    return verdict.round, verdict.samples, verdict.tokens, verdict.members


def _agree(one: VerdictSummary | None, other: VerdictSummary) -> bool:
    return one is not None and _figures(one) == _figures(other)


def _without_numbers(reason: str) -> str:
    """So that equal reasons of several rounds are counted as one."""
    return re.sub(r"\d[\d,.]*(e[+-]?\d+)?", "…", reason)
