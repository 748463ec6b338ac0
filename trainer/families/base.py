"""A model family: what it is called, how big it is, how to build it, and its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from trainer.parts import Part

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Module

    from trainer.parts import Base


class Params(Part):
    """Of a plug-in, as a recipe names them."""


class Objective(NamedTuple):
    """What a model is to guess: masked tokens, the next one, missing spans, or what comes after a
    prefix that it reads both ways.

    Of masked ones: `whole_words` are masked, or none of a word; `pairs`: sequences are of two
    segments, and the model also tells whether they are in their order.
    """

    kind: Literal["masked", "causal", "spans", "prefix"]
    whole_words: bool = False
    pairs: bool = False


MASKED, CAUSAL = Objective("masked"), Objective("causal")
SPANS, PREFIX = Objective("spans"), Objective("prefix")


@dataclass(frozen=True)
class Batch:
    """Token ids, their targets (`IGNORE` where there is none) and 1 for each id that is no padding.

    Integer tensors of shape (sequences, length). Targets are those of the ids, place by place, or,
    for a decoder that writes what is missing, what it has to write, of a length of its own.

    Of pairs: `segments`, 0 or 1 for each id, and `swapped`, 0 or 1 for each sequence.
    """

    ids: Tensor
    targets: Tensor
    attention: Tensor
    segments: Tensor | None = None
    swapped: Tensor | None = None

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
        for first in range(0, self.samples, rows):
            yield self._each(lambda tensor, at=first: tensor[at : at + rows])  # type: ignore[misc]

    def share(self, rank: int, size: int) -> Batch:
        """The sequences of process `rank` of `size`; perhaps none."""
        return self._each(lambda tensor: tensor[rank::size])

    def to(self, device: torch.device) -> Batch:
        return self._each(lambda tensor: tensor.to(device))

    def _each(self, act: Callable[[Tensor], Tensor]) -> Batch:
        tensors = (self.ids, self.targets, self.attention, self.segments, self.swapped)
        return Batch(*(act(tensor) if tensor is not None else None for tensor in tensors))  # type: ignore[arg-type]


class Family:
    label: ClassVar[str]
    objective: Objective
    is_pretrained: ClassVar[bool] = False  # it begins with a base, and `load`s it
    task: ClassVar[str | None] = None  # PEFT's name for what it is trained to
    Params: ClassVar[type[Params]] = Params

    base: Base | None = None
    reached: float = 1.0  # the share of its layers that a gradient passes through

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

    def recomputed_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        """The same where each layer keeps what goes into it alone, and is computed again for its
        gradient: with all of one layer, at the height of that.
        """
        return self.activation_values(vocab_size, tokens, targets)

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

    def outline(self, folder: Path, vocab_size: int, sequence_length: int) -> Module:
        """The same without the values of its parameters, which take no memory. Raises as `load`."""
        raise NotImplementedError

    def loss_sum(self, model: Module, batch: Batch) -> Tensor:
        """Sum of the losses of the batch's target tokens, a scalar that can be differentiated."""
        raise NotImplementedError


class Stacked(Family):
    """Layers of one kind, one after the other, and what is around them."""

    def activation_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        layers = self.params.layers * self._layer_values(tokens)
        return layers + self._other_values(vocab_size, tokens, targets)

    def recomputed_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        inputs = self.params.layers * tokens * self.params.hidden
        layer = self._layer_values(tokens)
        return inputs + layer + self._other_values(vocab_size, tokens, targets)

    def _layer_values(self, tokens: int) -> int:
        """Of one layer."""
        raise NotImplementedError

    def _other_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        raise NotImplementedError


class Sizes(Params):
    """Of a model of layers with weights of their own."""

    hidden: int = Field(256, ge=16, le=8192, description="Width of a layer.")
    layers: int = Field(4, ge=1, le=200, description="Layers, each with its own weights.")
    heads: int = Field(4, ge=1, le=128, description="Attention heads; must divide the width.")
    length: int = Field(512, ge=8, le=8192, description="Longest sequence in tokens.")

    @model_validator(mode="after")
    def fits_together(self) -> Self:
        require_heads(self.hidden, self.heads)
        return self


def require_length(longest: int, sequence_length: int) -> None:
    if sequence_length > longest:
        raise ValueError(
            f"sequences of {sequence_length} tokens do not fit a model for {longest}: "
            "lower sequence_length or raise the model's length"
        )


def require_heads(hidden: int, heads: int) -> None:
    if hidden % heads:
        raise ValueError(f"hidden ({hidden}) must be a multiple of heads ({heads})")
