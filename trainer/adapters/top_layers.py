"""The top layers alone: the last layers of the base train, and what is between them and the scores.

A gradient goes no farther down than these, so a pass keeps nothing of the layers below, and only
the top is averaged, stored and downloaded. Every average is exact, since it is of the weights
themselves. Scores by the word vectors (a tied head) train no more than those: they are also what
the lowest layer reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from trainer import stacks
from trainer.adapters import base

if TYPE_CHECKING:
    from torch.nn import Module

    from trainer.parts import Base, Stack

SIXTEEN_BITS = "bf16"


class Params(base.Params):
    layers: int = Field(
        2, ge=1, le=1000, description="How many of the last layers train; the others stay."
    )


class TopLayers(base.Adapter):
    label = "The top layers alone (the layers below are frozen)"
    trains = "the top layers of a trained model"
    turn = 2
    Params = Params

    def parameter_count(self, base: Base) -> int:
        stack = self._stack(base)
        return sum(stack.layers[-self.params.layers :]) + stack.after_values

    def frozen_parameters(self, base: Base) -> int:
        return base.parameters - self.parameter_count(base)

    def reached(self, base: Base) -> float:
        matrices = sum(m.count * m.inputs * m.outputs for m in base.matrices)
        return min(1.0, sum(self._stack(base).layers[-self.params.layers :]) / max(matrices, 1))

    def attach(self, model: Module, base: Base, seed: int) -> None:
        stack, trained = self._stack(base), 0
        below = len(stack.layers) - self.params.layers
        for path, param in model.named_parameters():
            layer = stacks.layer_of(path, stack)
            param.requires_grad = stacks.is_after(path, stack) if layer is None else layer >= below
            if param.requires_grad:
                param.data = param.data.float()
                trained += param.numel()
        if trained != self.parameter_count(base):
            raise ValueError(
                f"the top of this base has {trained} values, where its description has "
                f"{self.parameter_count(base)}: describe it anew"
            )
        if base.precision == SIXTEEN_BITS:
            _bridge(model)

    def _stack(self, base: Base) -> Stack:
        """Raises ValueError where there is no top, or none to train."""
        if base.stack is None:
            raise ValueError(
                "this base has no layers of which the last ones can be told apart (ALBERT's share "
                "their weights; one that was described by an older version can be described anew): "
                "choose LoRA, or another base"
            )
        if (layers := len(base.stack.layers)) < self.params.layers:
            raise ValueError(
                f"layers is {self.params.layers}, and this base has {layers}: choose fewer; with "
                "all of them, do without an adapter"
            )
        if base.precision not in ("fp32", SIXTEEN_BITS):
            raise ValueError(
                f"weights that are held in {base.precision} cannot train, and the top layers do: "
                "choose a base in fp32 or bf16, or LoRA"
            )
        return base.stack


def _bridge(model: Module) -> None:
    """Each layer gets what goes into it as exact as its own weights are, and so does each part
    outside of the layers: what is below, in 16 bits, is above in 32.
    """
    from transformers.modeling_layers import GradientCheckpointingLayer

    layers = [part for part in model.modules() if isinstance(part, GradientCheckpointingLayer)]
    within = {id(part) for layer in layers for part in layer.modules()}
    outside = [
        part
        for part in model.modules()
        if id(part) not in within and next(part.parameters(recurse=False), None) is not None
    ]
    for part in outside:
        own = list(part.parameters(recurse=False))
        if len({param.dtype for param in own}) > 1:  # scores by word vectors, with a bias of theirs
            for param in own:
                param.data = param.data.float()
    for part in (*layers, *outside):
        part.register_forward_pre_hook(_as_its_weights, with_kwargs=True)


def _as_its_weights(part: Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
    dtype = next(part.parameters()).dtype
    return _cast(args, dtype), _cast(kwargs, dtype)


def _cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cast(each, dtype) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_cast(each, dtype) for each in value)
    is_float = getattr(value, "is_floating_point", None)
    return value.to(dtype) if is_float is not None and is_float() else value


PLUGIN = TopLayers
