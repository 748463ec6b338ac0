"""What one peer has gathered in one round, and the receipts it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainer.data.marks import Mark
from trainer.families.base import Batch
from trainer.swarm import clock
from trainer.swarm.verdict import Note
from trainer.wire import Outcome, Receipt, VerdictSummary


@dataclass
class Tally:
    """`lost` are members lost in attempts at this round that had to be repeated. `arrived_s` is how
    long after the round's beginning the first attempt was, `share` what this peer carried of the
    average for all, `weight` its say in it (`wire.Receipt`); `own_loss` is on its owner's held-out
    texts, where that may be told. `late`: this was learned so many rounds ago. `steps`, `norm` and
    `drift` are of its newest offer, as `wire.Receipt` has them. Texts were read
    up to `mark`.
    """

    samples: int = 0
    tokens: int = 0
    loss_sum: float = 0.0
    compute_s: float = 0.0
    attempts: int = 0
    late: int = 0
    arrived_s: float = 0.0
    share: float | None = None
    weight: float | None = None
    own_loss: float | None = None
    steps: int | None = None
    norm: float | None = None
    drift: float | None = None
    mark: Mark = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    started: float = field(default_factory=clock.now)

    def add(self, batch: Batch, loss: float, seconds: float) -> None:
        self.samples += batch.samples
        self.tokens += batch.tokens
        self.loss_sum += loss
        self.compute_s += seconds

    def arrive(self, seconds: float) -> None:
        self.arrived_s = self.arrived_s or max(seconds, 0.0)

    def offered(self, note: Note, norm: float, drift: float) -> None:
        self.steps, self.norm, self.drift = note.steps, norm, drift

    def receipt(self, summary: VerdictSummary, refusal: str = "") -> Receipt:
        return Receipt(
            round=summary.round,
            samples=self.samples,
            tokens=self.tokens,
            accepted=not refusal,
            reason=refusal[:300],
            compute_s=self.compute_s,
            share=self.share,
            weight=self.weight,
            own_loss=self.own_loss,
            steps=self.steps,
            norm=self.norm,
            drift=self.drift,
            verdict=summary,
        )

    def released(self, round_number: int, reason: str) -> Receipt:
        """For work that no average will contain."""
        summary = VerdictSummary(
            round=round_number,
            outcome=Outcome.FAILED,
            members=0,
            samples=0,
            tokens=0,
            reason=reason[:300],
        )
        return self.receipt(summary, reason)
