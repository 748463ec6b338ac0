"""What a rehearsal has seen, as it happens and added up in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainer.simulator.meeting import Meeting
from trainer.wire import Body, HeldOut, Outcome, Receipt, RoundSeen, VerdictSummary


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
    """`witnessed` are the rounds that the coordinator applied: what is in the model."""

    tell: Callable[[Attempt], None]
    witnessed: dict[int, Attempt] = field(default_factory=dict)
    held_out: list[tuple[int, float]] = field(default_factory=list)
    attempts: Counter[str] = field(default_factory=Counter)
    _verdicts: dict[int, VerdictSummary] = field(default_factory=dict)
    _receipts: list[tuple[str, Receipt]] = field(default_factory=list)
    _members: dict[int, dict[str, int]] = field(default_factory=dict)
    _banned: Counter[str] = field(default_factory=Counter)

    def report(self, name: str, body: Body, at_s: float) -> None:
        if isinstance(body, Receipt):
            self._receipts.append((name, body))
        elif isinstance(body, HeldOut):
            self.held_out.append((body.round, body.loss))
        elif isinstance(body, RoundSeen):
            seen = body.verdict
            attempt = Attempt(
                seen.round, seen.outcome, seen.members, seen.samples, seen.loss, at_s, seen.lost
            )
            self._verdicts[seen.round] = seen
            self.witnessed[seen.round] = attempt
            self.attempts[seen.outcome] += 1
            self.tell(attempt)

    def meeting(self, meeting: Meeting, witness: str) -> None:
        """A group's attempt is over, whatever came of it."""
        verdict = meeting.verdicts.get(witness)
        outcomes = {each.outcome for each in meeting.verdicts.values()}
        if outcomes == {Outcome.FAILED}:
            self.attempts[Outcome.FAILED] += 1
        if verdict is None or verdict.outcome is Outcome.FAILED:
            return
        self._banned.update(name for name in verdict.lost if name not in meeting.lost)
        if verdict.outcome is Outcome.CLEAN:
            offered = {n: x.samples for n, x in verdict.notes.items() if n not in verdict.lost}
            self._members[meeting.round] = offered
        else:
            self.attempts[Outcome.PARTIAL] += 1
            at_s = meeting.net.events.now
            count, samples = len(verdict.offered), verdict.samples
            self.tell(
                Attempt(
                    meeting.round, verdict.outcome, count, samples, None, at_s, tuple(meeting.lost)
                )
            )

    def sums(self) -> dict[str, Any]:
        """Samples: all that are in the model, and for whom there is a receipt.

        `without_receipt` were averaged, but their peer ended or was cut off before it knew.
        `elsewhere` have a receipt of a round that the coordinator saw otherwise, or not at all.
        """
        accepted = [(name, r) for name, r in self._receipts if r.accepted]
        matching = [(n, r) for n, r in accepted if self._agrees(r.verdict)]
        booked = {(name, receipt.round) for name, receipt in matching}
        silent = sum(
            samples
            for number in self._verdicts
            for name, samples in self._members.get(number, {}).items()
            if (name, number) not in booked
        )
        return {
            "in_the_model": sum(verdict.samples for verdict in self._verdicts.values()),
            "receipts": sum(receipt.samples for _, receipt in matching),
            "without_receipt": silent,
            "elsewhere": sum(r.samples for _, r in accepted) - sum(r.samples for _, r in matching),
            "released": sum(r.samples for _, r in self._receipts if not r.accepted),
        }

    def refusals(self) -> dict[str, int]:
        reasons = Counter(r.reason for _, r in self._receipts if not r.accepted)
        reasons.update({f"offer of {n} refused": count for n, count in self._banned.items()})
        return dict(sorted(reasons.items()))

    def bytes_moved(self) -> int:
        """By all members of all rounds in the model, sent."""
        return sum(receipt.verdict.bytes_out for _, receipt in self._receipts if receipt.accepted)

    def _agrees(self, verdict: VerdictSummary) -> bool:
        seen = self._verdicts.get(verdict.round)
        return seen is not None and (seen.samples, seen.tokens, seen.members) == (
            verdict.samples,
            verdict.tokens,
            verdict.members,
        )
