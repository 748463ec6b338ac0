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

    def offer(self, ctx: base.Context) -> base.Offer:
        return base.Offer([g / max(ctx.tokens, 1) for g in ctx.gradient], weight=ctx.tokens)

    def accept(
        self, ctx: base.Context, mean: Sequence[Tensor], members: Sequence[base.Member]
    ) -> None:
        ctx.step(mean)


PLUGIN = DeDLOC
