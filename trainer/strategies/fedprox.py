"""FedProx: FedAvg whose local steps are pulled back to the anchor.

Li et al. 2020, algorithm 2: a device minimises F(w) + mu/2 |w - anchor|^2, so its gradient is
g + mu (w - anchor). A device that took few steps counts like any other (their gamma-inexact work).
"""

from __future__ import annotations

from pydantic import Field

from trainer.strategies import base, fedavg


class Params(fedavg.Params):
    mu: float = Field(
        0.01,
        ge=0,
        le=1000,
        description="How strongly a device is pulled back to the shared model; 0 is FedAvg.",
    )


class FedProx(fedavg.FedAvg):
    label = "FedProx (local training, held back)"
    summary = "FedAvg that stays steady when data and speed differ a lot from device to device."
    Params = Params

    def correct(self, ctx: base.Context) -> None:
        """The gradient is a sum over the micro-batch's tokens, so the pull counts as often."""
        pull = self.params.mu * ctx.batch_tokens
        if not pull:
            return
        for gradient, param, anchor in zip(ctx.gradient, ctx.params, ctx.anchor, strict=True):
            gradient.add_(param - anchor, alpha=pull)


PLUGIN = FedProx
