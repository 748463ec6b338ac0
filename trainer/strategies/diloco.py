"""DiLoCo: many local AdamW steps, then a Nesterov step along the mean pseudo-gradient.

The paper's outer rate is 0.7 and its momentum 0.9. A peer keeps the moments of its local steps from
round to round; a newcomer begins with none.
"""

from __future__ import annotations

from pydantic import Field

from trainer.strategies import base, fedavg


class Params(fedavg.Params):
    outer_learning_rate: float = Field(
        0.7, gt=0, le=10, description="Of the Nesterov step that ends a round."
    )
    outer_momentum: float = Field(0.9, ge=0, lt=1, description="Of the Nesterov step.")


class DiLoCo(fedavg.FedAvg):
    label = "DiLoCo (many local steps)"
    summary = "Hundreds of local steps between averages; for slow links."
    formula = """\
device: wᵢ ← x, then Kᵢ times wᵢ ← AdamW(wᵢ, g(wᵢ); r), with moments that last
all: d = Σ pᵢ (x - wᵢ), v ← b v + d, then x ← x - R (d + b v)
R is the outer learning rate and b the outer momentum."""
    source = base.Source("Douillard et al. 2023, algorithm 1", "https://arxiv.org/abs/2311.08105")
    Params = Params
    nesterov = True

    def start(self, ctx: base.Context) -> None:
        self.make_velocity(ctx)


PLUGIN = DiLoCo
