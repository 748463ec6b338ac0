"""DeDLOC: all gradients of a round add up to one huge batch, and all peers take the same step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainer.strategies import base

if TYPE_CHECKING:
    from torch import Tensor


class DeDLOC(base.Strategy):
    label = "DeDLOC (one huge batch)"
    summary = "Exact large-batch training; a lost peer only makes the batch smaller."
    formula = """\
device: nothing moves before the average; gᵢ is the mean gradient of all its targets
all: x ← U(x, Σ pᵢ gᵢ; r)
U is a step of AdamW or LAMB, as the recipe says."""
    source = base.Source("Diskin et al. 2021 (DeDLOC)", "https://arxiv.org/abs/2106.10207")

    def offer(self, ctx: base.Context) -> base.Offer:
        return base.Offer([g / max(ctx.tokens, 1) for g in ctx.gradient], weight=ctx.tokens)

    def accept(
        self, ctx: base.Context, mean: Sequence[Tensor], members: Sequence[base.Member]
    ) -> None:
        ctx.step(mean)
        self.told = f"one step for all, learning rate {ctx.learning_rate:.3g}"


PLUGIN = DeDLOC
