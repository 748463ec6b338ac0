"""A model family: what it is called, how big it is, how to build it, and its loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from trainer.parts import Part

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Module

    from trainer.parts import Base


class Params(Part):
    """Of a plug-in, as a recipe names them."""


@dataclass(frozen=True)
class Batch:
    """Token ids, their targets (`IGNORE` where there is none) and 1 for each id that is no padding.

    Integer tensors of shape (sequences, length). Targets are those of the ids, place by place, or,
    for a decoder that writes what is missing, what it has to write, of a length of its own.
    """

    ids: Tensor
    targets: Tensor
    attention: Tensor

    IGNORE: ClassVar[int] = -100

    @property
    def samples(self) -> int:
        return self.ids.shape[0]

    @property
    def tokens(self) -> int:
        """Number of target tokens: the unit of weight everywhere."""
        return int((self.targets != self.IGNORE).sum())

    def parts(self, rows: int) -> Iterator[Batch]:
        """The same sequences in batches of at most `rows`."""
        cut = (tensor.split(rows) for tensor in (self.ids, self.targets, self.attention))
        return (Batch(*part) for part in zip(*cut, strict=True))

    def share(self, rank: int, size: int) -> Batch:
        """The sequences of process `rank` of `size`; perhaps none."""
        return Batch(self.ids[rank::size], self.targets[rank::size], self.attention[rank::size])

    def to(self, device: torch.device) -> Batch:
        return Batch(self.ids.to(device), self.targets.to(device), self.attention.to(device))


class Family:
    label: ClassVar[str]
    objective: ClassVar[Literal["masked", "causal", "spans"]]
    is_pretrained: ClassVar[bool] = False  # it begins with a base, and `load`s it
    task: ClassVar[str | None] = None  # PEFT's name for what it is trained to
    Params: ClassVar[type[Params]] = Params

    base: Base | None = None

    def __init__(self, params: Any) -> None:
        self.params = params

    def parameter_count(self, vocab_size: int) -> int:
        """Trainable parameters in closed form, tied ones counted once. Needs no torch."""
        raise NotImplementedError

    def used_parameters(self, vocab_size: int) -> int:
        """Those that compute something for a token; one that is used k times counts k times."""
        return self.parameter_count(vocab_size)

    def activation_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        """Floating-point values that a pass keeps for its gradient, in closed form.

        Of `tokens` places that are read and `targets` that are scored.
        """
        raise NotImplementedError

    def build(self, vocab_size: int, sequence_length: int, pad_id: int) -> Module:
        """A fresh model. Raises ValueError when `sequence_length` is more than it can hold."""
        raise NotImplementedError

    def layers(self, model: Module) -> Iterable[Module]:
        """The parts one after the other that hold most of what a pass keeps for its gradient."""
        from transformers.modeling_layers import GradientCheckpointingLayer

        return [part for part in model.modules() if isinstance(part, GradientCheckpointingLayer)]

    def load(self, folder: Path, vocab_size: int, sequence_length: int) -> Module:
        """The base in `folder`. Raises ValueError when it is not what the recipe needs."""
        raise NotImplementedError

    def loss_sum(self, model: Module, batch: Batch) -> Tensor:
        """Sum of the losses of the batch's target tokens, a scalar that can be differentiated."""
        raise NotImplementedError


def require_length(longest: int, sequence_length: int) -> None:
    if sequence_length > longest:
        raise ValueError(
            f"sequences of {sequence_length} tokens do not fit a model for {longest}: "
            "lower sequence_length or raise the model's length"
        )


def require_heads(hidden: int, heads: int) -> None:
    if hidden % heads:
        raise ValueError(f"hidden ({hidden}) must be a multiple of heads ({heads})")
