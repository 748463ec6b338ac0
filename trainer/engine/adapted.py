"""What a recipe's adapter adds to the rounds of a learner, and nothing where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from trainer import catalogue
from trainer.adapters.base import Trained
from trainer.engine import checkpoint
from trainer.strategies.base import Offer

if TYPE_CHECKING:
    from trainer.engine.learner import Learner


class Adapted:
    """`missed`: how far the newest average is off (`Adapter.settle`)."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._adapter = catalogue.adapter_of(learner.recipe)
        self._adds = self._adapter is not None and self._adapter.adds_to(learner.strategy)
        self.missed: float | None = None

    def offer(self) -> Offer:
        """The strategy's, and what is averaged beside it."""
        offer: Offer = self._learner.strategy.offer(self._learner.context)
        if not self._adds or self._adapter is None:
            return offer
        return replace(offer, tensors=[*offer.tensors, *self._adapter.extras(self._trained())])

    def of_strategy(self, mean: Sequence[Tensor]) -> Sequence[Tensor]:
        """What the strategy has offered of it."""
        return mean[: self._learner.strategy.vectors * len(self._learner.params)]

    def settle(self, mean: Sequence[Tensor]) -> None:
        """After the strategy has applied its part of it."""
        if self._adds and self._adapter is not None:
            extras = mean[len(self.of_strategy(mean)) :]
            self.missed = self._adapter.settle(self._trained(mean), extras)

    def kept(self) -> dict[str, Tensor]:
        """For a checkpoint: what of it does not train."""
        found = self._adapter.kept(self._learner.model) if self._adapter is not None else {}
        return {f"{checkpoint.KEPT_AS_IT_IS}{name}": tensor.cpu() for name, tensor in found.items()}

    def _trained(self, changes: Sequence[Tensor] = ()) -> Trained:
        """`changes`: the mean offer, which begins with those of the parameters."""
        names, learner = self._learner.names, self._learner
        now = dict(zip(names, learner.params, strict=True))
        anchor = dict(zip(names, learner.anchor, strict=True))
        averaged = {n: anchor[n] - change for n, change in zip(names, changes, strict=False)}
        return Trained(now, anchor, learner.recipe.seed, averaged)
