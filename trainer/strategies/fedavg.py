"""FedAvg: each peer trains by itself, then all take the weighted mean of what that changed.

With outer momentum it is FedAvgM. What is averaged are pseudo-gradients: anchor minus parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from trainer.strategies import base

if TYPE_CHECKING:
    from torch import Tensor


class Params(base.Params):
    local_optimizer: Literal["adamw", "sgd"] = Field(
        "adamw", description="Of a device's own steps; sgd wants a higher learning rate."
    )
    local_momentum: float = Field(0.0, ge=0, lt=1, description="For sgd.")
    most_local_steps: int = Field(
        0,
        ge=0,
        le=10**6,
        description="A device that has taken so many in a round waits for the others; 0: no limit.",
    )
    most_training_s: float = Field(
        0.0,
        ge=0,
        le=86_400,
        description="A device that has trained so long in a round waits for the others, so that "
        "fast and slow ones are ready at the same time; 0: no limit.",
    )
    most_passes: float = Field(
        0.0,
        ge=0,
        le=1000,
        description="A device that has trained in a round on so many times as many samples as its "
        "own texts have waits for the others: much data, many steps. 0: no limit.",
    )
    weigh_by: Literal["tokens", "samples", "equal"] = Field(
        "tokens", description="What a device's work counts by in the average."
    )
    outer_learning_rate: float = Field(
        1.0, gt=0, le=10, description="Share of the averaged change that is applied."
    )
    outer_momentum: float = Field(0.0, ge=0, lt=1, description="Of the averaged changes.")

    @model_validator(mode="after")
    def momentum_has_its_optimizer(self) -> Params:
        if self.local_momentum and self.local_optimizer != "sgd":
            raise ValueError(
                f"local_momentum ({self.local_momentum:g}) is for sgd, adamw has its own: "
                "set it to 0 or choose sgd as local_optimizer"
            )
        return self


ONLY_SGD = "Of a device's own steps. Only sgd; it wants a higher learning rate."


def only_sgd(name: str, why: str) -> str:
    """The local optimizer, where the mathematics allows no other. Raises ValueError, with `why`."""
    if name != "sgd":
        raise ValueError(f"{why}: choose sgd as local_optimizer, with a higher learning rate")
    return name


class FedAvg(base.Strategy):
    label = "FedAvg (local training)"
    summary = "Peers train by themselves and average the results; little traffic, simple to follow."
    formula = """\
device: wᵢ ← x, then Kᵢ times wᵢ ← wᵢ - r g(wᵢ), or AdamW's step
all: v ← b v + Σ pᵢ (x - wᵢ), then x ← x - R v
R is the outer learning rate and b the outer momentum: with 1 and 0, x is the mean of all wᵢ."""
    source = base.Source(
        "McMahan et al. 2017, algorithm 1 (FedAvg); Hsu et al. 2019 (FedAvgM)",
        "https://arxiv.org/abs/1602.05629",
    )
    local = True
    offers_changes = True
    takes_late = True
    Params = Params
    nesterov: ClassVar[bool] = False

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        self.optimizer, self.momentum = params.local_optimizer, params.local_momentum
        self.most_steps, self.most_s = params.most_local_steps, params.most_training_s
        self.most_passes = params.most_passes

    def extra(self) -> base.Extra:
        return base.Extra(shared=1 if self.params.outer_momentum else 0)

    def start(self, ctx: base.Context) -> None:
        """Local training depends on nothing but the anchor and the data: moments begin anew."""
        self.make_velocity(ctx)
        for tensors in self.own.values():
            for tensor in tensors:
                tensor.zero_()

    def make_velocity(self, ctx: base.Context) -> None:
        if self.params.outer_momentum and "velocity" not in self.shared:
            self.shared["velocity"] = [anchor * 0 for anchor in ctx.anchor]

    def stepped(self, ctx: base.Context) -> None:
        ctx.step([gradient / max(ctx.batch_tokens, 1) for gradient in ctx.gradient])

    def offer(self, ctx: base.Context) -> base.Offer:
        weights = {"tokens": ctx.tokens, "samples": ctx.samples, "equal": min(ctx.tokens, 1)}
        change = [anchor - param for anchor, param in zip(ctx.anchor, ctx.params, strict=True)]
        return base.Offer(change, weight=weights[self.params.weigh_by])

    def accept(
        self, ctx: base.Context, mean: Sequence[Tensor], members: Sequence[base.Member]
    ) -> None:
        rate = self.params.outer_learning_rate
        direction = self._direction(mean) if self.params.outer_momentum else mean
        for param, anchor, step in zip(ctx.params, ctx.anchor, direction, strict=True):
            param.copy_(anchor).sub_(step, alpha=rate)
        self.told = self._in_words()

    def _in_words(self) -> str:
        rate, momentum = self.params.outer_learning_rate, self.params.outer_momentum
        if momentum:
            length = base.norm_of(self.shared["velocity"])
            what = f"with a velocity of length {length:.3g} behind it"
            return f"{rate:g} of the mean change was applied, {what}"
        if rate == 1:
            return "the model is the mean of what the devices made of it"
        return f"the model went {rate:g} of the way to the mean of what the devices made of it"

    def _direction(self, mean: Sequence[Tensor]) -> Sequence[Tensor]:
        momentum, velocity = self.params.outer_momentum, self.shared["velocity"]
        for speed, gradient in zip(velocity, mean, strict=True):
            speed.mul_(momentum).add_(gradient)
        if not self.nesterov:
            return velocity
        return [g.add(v, alpha=momentum) for g, v in zip(mean, velocity, strict=True)]


PLUGIN = FedAvg
