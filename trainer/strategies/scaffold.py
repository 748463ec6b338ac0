"""SCAFFOLD: each local step is corrected by how this device's gradients differ from everybody's.

After K steps c_i becomes the mean of the K uncorrected gradients (for plain SGD the same as the
paper's c_i - c + (anchor - w) / (K r), and right with momentum too), and c stays the mean of all.

That mean is what makes it right, so it is kept like books. Each member's c_i is booked in c with
the weight n_i of the average that took it; in the next one it offers, of weight m_i,
(c_i' - c) - (n_i / m_i) (c_i - c). With M = sum of n_i over all members, whether or not they offer
something this time, the mean d of these offers makes c' = c + d sum(m_i) / M' the mean of all c_i
again. M is shared, and each member's note says its n_i. Where these do not add up to M, somebody
has left or come back anew: then c stays, and new books begin, in which nothing is booked (M = 0)
and c becomes the mean of the next round's c_i'. A newcomer has no c_i and corrects nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from trainer.strategies import base, fedavg

if TYPE_CHECKING:
    from torch import Tensor

BALANCED = 1e-5  # relative; M is a float32
RENEWED_ROUNDS = 25  # rounding on the wire adds up; new books begin without it


class Params(fedavg.Params):
    local_optimizer: Literal["adamw", "sgd"] = Field("sgd", description=fedavg.ONLY_SGD)

    @field_validator("local_optimizer")
    @classmethod
    def follows_the_corrected_gradient(cls, name: str) -> str:
        why = (
            "SCAFFOLD's corrections cancel out over all devices only where a step is in proportion "
            f"to its gradient, and {name}'s is not"
        )
        return fedavg.only_sgd(name, why)


class Scaffold(fedavg.FedAvg):
    """`control` is c_i, None before the first average that took it, and `booked` n_i."""

    label = "SCAFFOLD (local training, corrected)"
    summary = "Local steps head for the optimum of all data, however it differs; twice the traffic."
    formula = """\
device: wᵢ ← x, then Kᵢ times wᵢ ← wᵢ - r (g(wᵢ) - cᵢ + c); cᵢ ← the mean of these g(wᵢ)
all: x ← x - R Σ pᵢ (x - wᵢ) and c ← Σ pᵢ cᵢ, with the same weights
cᵢ is what the device's own gradients are like, c what everybody's are."""
    source = base.Source(
        "Karimireddy et al. 2020, algorithm 1, option II", "https://arxiv.org/abs/1910.06378"
    )
    Params = Params
    vectors = 2
    takes_late = False  # corrections are against this round's c
    uncapped = "SCAFFOLD books each device's corrections with the weight that it offered"
    longest = 100.0  # a newcomer goes all the way to its own optimum, which the others no longer do

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        self.control: list[Tensor] | None = None
        self.booked = 0.0

    def extra(self) -> base.Extra:
        """Control variates: everybody's, its own and, while a round lasts, the next of its own."""
        more = super().extra()
        return base.Extra(more.shared + 1, more.own + 2)

    def joined(self) -> None:
        self.control, self.booked = None, 0.0

    def start(self, ctx: base.Context) -> None:
        super().start(ctx)
        if "control" not in self.shared:
            self.shared["control"] = [anchor * 0 for anchor in ctx.anchor]
            self.shared["booked"] = [anchor.sum() * 0 for anchor in ctx.anchor]  # M, each time
        self._path = [anchor * 0 for anchor in ctx.anchor]

    def correct(self, ctx: base.Context) -> None:
        tokens = max(ctx.batch_tokens, 1)
        for path, gradient in zip(self._path, ctx.gradient, strict=True):
            path.add_(gradient, alpha=1 / tokens)
        if self.control is None:
            return
        differences = zip(ctx.gradient, self.shared["control"], self.control, strict=True)
        for gradient, common, own in differences:
            gradient.add_(common - own, alpha=tokens)

    def offer(self, ctx: base.Context) -> base.Offer:
        """Both halves are lengths of steps, so that no member's norm is that of its data alone."""
        change = super().offer(ctx)
        drift = [common * 0 for common in self.shared["control"]]
        if change.weight:
            rate, kept = _rate(ctx), self.booked / change.weight
            own = self.control or self.shared["control"]
            parts = zip(self._mean_gradient(ctx), own, self.shared["control"], strict=True)
            drift = [((new - c) - (old - c) * kept) * rate for new, old, c in parts]
        return base.Offer([*change.tensors, *drift], change.weight, {"booked": self.booked})

    def accept(
        self, ctx: base.Context, mean: Sequence[Tensor], members: Sequence[base.Member]
    ) -> None:
        super().accept(ctx, mean[: len(ctx.params)], members)
        taken, idle, balanced = self._add_up(members)
        if balanced:
            share = taken / (taken + idle) / _rate(ctx)
            for control, drift in zip(self.shared["control"], mean[len(ctx.params) :], strict=True):
                control.add_(drift, alpha=share)
        due = not idle and (ctx.round + 1) % RENEWED_ROUNDS == 0
        total = taken + idle if balanced and not due else 0.0
        for number in self.shared["booked"]:
            number.fill_(total)
        if own := sum(member.weight for member in members if member.is_own):
            self.control, self.booked = self._mean_gradient(ctx), own
        self.booked = self.booked if total else 0.0
        length = base.norm_of(self.shared["control"])
        books = "c is the mean of all members' own" if total else "new books begin now"
        self.told += f"; the common correction c has length {length:.3g}, and {books}"

    def _add_up(self, members: Sequence[base.Member]) -> tuple[float, float, bool]:
        """The weight of all offers in the average, what is booked of those who offered nothing, and
        whether every c_i that is booked belongs to a member that is here. Bookings add to M or are
        not believed, so that no claim is larger than that.
        """
        total = float(self.shared["booked"][0])
        claims = [max(one.note.get("booked", 0.0), 0.0) if total else 0.0 for one in members]
        taken = sum(member.weight for member in members)
        idle = sum(n for n, member in zip(claims, members, strict=True) if not member.weight)
        complete = math.isclose(sum(claims), total, rel_tol=BALANCED)
        return taken, idle, complete and not any(member.lost for member in members)

    def _mean_gradient(self, ctx: base.Context) -> list[Tensor]:
        return [path / ctx.steps for path in self._path]


def _rate(ctx: base.Context) -> float:
    """A schedule may end at 0."""
    return ctx.learning_rate or 1.0


PLUGIN = Scaffold
