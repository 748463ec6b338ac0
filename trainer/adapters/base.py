"""An adapter: what trains of a base that is frozen, how much that is, and how it gets there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from trainer.parts import Part

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from trainer.parts import Base
    from trainer.strategies.base import Strategy


class Params(Part):
    """Of a plug-in, as a recipe names them."""


@dataclass(frozen=True)
class Trained:
    """Parameters that train, by name, as they are and as they were when the round began.

    `averaged`: the means of all devices', once there are such; a strategy may go elsewhere.
    """

    now: Mapping[str, Tensor]
    anchor: Mapping[str, Tensor]
    seed: int
    averaged: Mapping[str, Tensor] = field(default_factory=dict)


class Adapter:
    """`extras` and `settle` are called where it `adds_to` what the strategy has averaged."""

    label: ClassVar[str]
    trains: ClassVar[str]  # in the words of a page: what trains is …
    in_peft: ClassVar[bool] = False  # whether PEFT has a file format for it
    turn: ClassVar[int] = 9  # which kinds a device gets first that is too small for all of a model
    Params: ClassVar[type[Params]] = Params

    def __init__(self, params: Any) -> None:
        self.params = params

    def parameter_count(self, base: Base) -> int:
        """Of those that train. Raises ValueError where the adapter does not fit the base."""
        raise NotImplementedError

    def frozen_parameters(self, base: Base) -> int:
        """Of the base, those that stay as they are."""
        return base.parameters

    def reached(self, base: Base) -> float:
        """The share of the base's layers that a gradient passes through: a pass keeps nothing of
        the others.
        """
        return 1.0

    def check(self, strategy: Strategy) -> None:
        """Raises ValueError where it makes no sense with the strategy."""

    def adds_to(self, strategy: Strategy) -> bool:
        """Only where devices offer by how much their own steps changed the parameters."""
        return False

    def extra_values(self, base: Base) -> int:
        """Number of values that `extras` makes."""
        return 0

    def attach(self, model: Module, base: Base, seed: int) -> None:
        """Freezes the model but for float32 parameters that are in it, or put into it, the same for
        each who does so.

        Raises ValueError where the model is not what `base` says.
        """
        raise NotImplementedError

    def kept(self, model: Module) -> dict[str, Tensor]:
        """Of its parameters, those that do not train: a checkpoint holds them for others."""
        return {}

    def extras(self, trained: Trained) -> list[Tensor]:
        """What is averaged beside the strategy's offer."""
        return []

    def settle(self, trained: Trained, mean: Sequence[Tensor]) -> float | None:
        """The strategy has applied its average, and `mean` is that of `extras`.

        May correct the parameters in place; how far these are from what was to be averaged, as a
        share of the mean change.
        """
        return None

    def peft_config(self, base: Base, paths: Sequence[str]) -> dict[str, Any]:
        """What PEFT, where it knows such adapters, has to know of it; `paths` are the modules that
        it is beside.
        """
        raise NotImplementedError
