"""FedProx: FedAvg whose local steps are pulled back to the anchor.

A device minimises its own loss and mu/2 |w - anchor|^2. One that took few steps counts like any
other (the paper's gamma-inexact work). With momentum or AdamW in place of g, the pull stays outside
of it, as in Wang et al. 2020 and as AdamW's decay does: neither moments nor clipping change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from trainer.strategies import base, fedavg

if TYPE_CHECKING:
    from torch import Tensor


class Params(fedavg.Params):
    mu: float = Field(
        0.1,
        ge=0,
        le=1000,
        description="How strongly a device is pulled back to the shared model: in each step by mu "
        "x learning rate of the way. 0 is FedAvg.",
    )


class FedProx(fedavg.FedAvg):
    label = "FedProx (local training, held back)"
    summary = "FedAvg that stays steady when data and speed differ a lot from device to device."
    formula = """\
device: wᵢ ← x, then Kᵢ times wᵢ ← wᵢ - r (g(wᵢ) + μ (wᵢ - x))
all: as FedAvg, x ← x - R Σ pᵢ (x - wᵢ)"""
    source = base.Source("Li et al. 2020, algorithm 2", "https://arxiv.org/abs/1812.06127")
    Params = Params

    def pull(self, ctx: base.Context) -> float:
        """Share of the way back to the anchor that each step goes."""
        return min(ctx.learning_rate * self.params.mu, 1.0)

    def accept(
        self, ctx: base.Context, mean: Sequence[Tensor], members: Sequence[base.Member]
    ) -> None:
        super().accept(ctx, mean, members)
        if pull := self.pull(ctx):
            self.told += f"; each local step gave back {pull:.3g} of its way from the shared one"

    def stepped(self, ctx: base.Context) -> None:
        if pull := self.pull(ctx):
            for param, anchor in zip(ctx.params, ctx.anchor, strict=True):
                param.sub_(param - anchor, alpha=pull)
        super().stepped(ctx)


PLUGIN = FedProx
