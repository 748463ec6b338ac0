"""Passes that compute in 16 bits, where a recipe permits it; what is learned is kept in 32.

Micikevicius et al. 2018 (https://arxiv.org/abs/1710.03740): values, gradients that add up and the
optimizer's state are fp32; matrices are multiplied in 16 bits, as torch's autocast has it. fp16
holds no gradient below 6e-8, so the loss is multiplied by a scale first; what then is too large
costs one micro-batch and half of the scale.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor

from trainer.device.precision import WORDS, Kind, native
from trainer.parts import Precision
from trainer.recipe import Recipe

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
FIRST_SCALE = 2.0**16  # of the mean loss; the first three as in torch's GradScaler
GROW_AFTER = 2000  # micro-batches in a row that were not too large
FACTOR = 2.0
LEAST_SCALE = 1.0
# What a base's weights that are held so are multiplied in, beside fp32.
SERVES: dict[Precision, tuple[Kind, ...]] = {
    "fp32": ("bf16", "fp16"),
    "bf16": ("bf16",),
    "int8": (),
    "nf4": (),
}
Found = TypeVar("Found")
log = logging.getLogger(__name__)


class Dropped(ArithmeticError):
    """A micro-batch was too large for fp16, and left no trace."""


def all_finite(tensors: Iterable[Tensor]) -> bool:
    found = [tensor.isfinite().all() for tensor in tensors]
    return not found or bool(torch.stack(found).all())


class Arithmetic:
    """`kind` is what passes compute in: with fp16, fp32 from where no scale is small enough."""

    def __init__(self, kind: Kind) -> None:
        self.kind: Kind = kind
        self.scale, self._good = FIRST_SCALE, 0

    @property
    def words(self) -> str:
        """For its volunteer; "" where it does as all do."""
        return "" if self.kind == "fp32" else f"this device computes {WORDS[self.kind]}"

    def forward(self, device: torch.device) -> AbstractContextManager[Any]:
        """Around the forward half of a pass, and not around the backward one."""
        if self.kind == "fp32":
            return nullcontext()
        return torch.autocast(device.type, DTYPES[self.kind])

    def gather(
        self,
        params: Sequence[Any],
        tokens: int,
        passes: Callable[[float], Found | None],
        is_fine: Callable[[list[Any]], bool] = all_finite,
    ) -> Found | None:
        """What `passes` finds, which adds a micro-batch of so many target tokens to the gradients.

        It is given what to multiply losses by, and finds None where one is not finite. Raises
        Dropped: the gradients are what they were, and the next micro-batch is scaled by less.
        """
        if self.kind != "fp16":
            return passes(1.0)
        factor = self.scale / max(tokens, 1)
        held = [param.grad for param in params]
        for param in params:
            param.grad = None
        try:
            found = passes(factor)
            made = [param.grad for param in params]
        finally:
            for param, gradient in zip(params, held, strict=True):
                param.grad = gradient
        if not is_fine([one for one in made if one is not None]) or found is None:
            self._too_large()
        for gradient, one in zip(held, made, strict=True):
            if one is not None:
                gradient.add_(one, alpha=1 / factor)
        self._good += 1
        if self._good >= GROW_AFTER:
            self.scale, self._good = FACTOR * self.scale, 0
        return found

    def _too_large(self) -> None:
        self._good = 0
        if self.scale > LEAST_SCALE:
            self.scale /= FACTOR
            raise Dropped(f"too large for fp16: the loss is scaled by {self.scale:g} from now on")
        self.kind = "fp32"
        raise Dropped("this model's values are too large for fp16: it computes in fp32 from now on")


def chosen(recipe: Recipe) -> Kind:
    """For the passes of this recipe on this device; 32 bits over a base that is held otherwise."""
    if recipe.precision == "fp32":
        return "fp32"
    held = recipe.base.precision if recipe.base is not None else "fp32"
    kind = native()
    if kind not in SERVES[held]:
        kind = "fp32"
    log.info("This device computes %s", WORDS[kind])
    return kind
