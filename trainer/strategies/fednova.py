"""FedNova: each device's change is divided by the length of its own path before it is averaged.

|a_i| is the L1 norm of how often each gradient of the path is in the change: K for plain SGD. With
momentum b and a pull q (`fedprox`) it is v after K times c = b c + 1, v = (1 - q) v + c from 0. It
follows from K, which is in all notes, so all have the same mean length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from trainer.strategies import base, fedavg, fedprox

if TYPE_CHECKING:
    from torch import Tensor


class Params(fedprox.Params):
    local_optimizer: Literal["adamw", "sgd"] = Field("sgd", description=fedavg.ONLY_SGD)
    mu: float = Field(
        0.0,
        ge=0,
        le=1000,
        description="How strongly a device is pulled back to the shared model, as in FedProx.",
    )

    @field_validator("local_optimizer")
    @classmethod
    def has_a_known_path(cls, name: str) -> str:
        why = (
            f"FedNova needs to know how much of each gradient is in a device's change, and {name} "
            "divides every gradient by what came before it"
        )
        return fedavg.only_sgd(name, why)


class FedNova(fedprox.FedProx):
    label = "FedNova (local training, normalised)"
    summary = "FedAvg in which a fast device does not count for more because it took more steps."
    formula = """\
device: wᵢ as FedAvg's (μ = 0) or FedProx's, then uᵢ = (x - wᵢ) / |aᵢ|
all: x ← x - R (Σ pᵢ |aᵢ|) (Σ pᵢ uᵢ)
|aᵢ| is the length of the device's path: Kᵢ with plain SGD, more with momentum, less with μ."""
    source = base.Source("Wang et al. 2020, section 4.1", "https://arxiv.org/abs/2007.07481")
    Params = Params
    offers_changes = False  # they are divided by the path's length
    takes_late = False  # its length follows from the steps of this round

    def offer(self, ctx: base.Context) -> base.Offer:
        change = super().offer(ctx)
        length = self._length(ctx, ctx.steps) or 1.0
        return base.Offer([tensor / length for tensor in change.tensors], change.weight)

    def accept(
        self, ctx: base.Context, mean: Sequence[Tensor], members: Sequence[base.Member]
    ) -> None:
        lengths = [(self._length(ctx, one.steps), one.weight) for one in members if one.weight]
        total = sum(weight for _, weight in lengths)
        length = sum(path * weight for path, weight in lengths) / total
        super().accept(ctx, [direction * length for direction in mean], members)
        shortest, longest = min(lengths)[0], max(lengths)[0]
        self.told = (
            f"the mean of the changes a step, taken {length:.3g} times: the mean of the devices' "
            f"paths, which are {shortest:.3g} to {longest:.3g} steps long"
        )

    def _length(self, ctx: base.Context, steps: int) -> float:
        return path_length(steps, self.momentum, self.pull(ctx))


def path_length(steps: int, momentum: float = 0.0, pull: float = 0.0) -> float:
    """|a| of so many local steps; the recursion above in closed form."""
    kept = 1.0 - pull
    echo = momentum * _powers(kept, momentum, steps)
    return (_powers(1.0, kept, steps) - echo) / (1.0 - momentum)


def _powers(one: float, other: float, count: int) -> float:
    """The sum of one^(count - 1 - k) other^k over k below count."""
    if one == other:
        return count * one ** max(count - 1, 0)
    return float(one**count - other**count) / (one - other)


PLUGIN = FedNova
