"""The model of a recipe, with the same first parameters wherever it is built."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from trainer import catalogue
from trainer.engine.streaming import stream
from trainer.families.base import Batch
from trainer.recipe import Recipe


def build(
    recipe: Recipe, pad_id: int, base: Path | None = None, *, streams: bool = False
) -> tuple[Any, Any]:
    """Its family, and a model of it on the GPU, if there is one, ready to train.

    `base`: the folder with the recipe's; if it `streams`, what an adapter leaves as it is stays in
    the files. Raises ValueError where these are not what the recipe needs.
    """
    family = catalogue.family_of(recipe)
    vocab_size, length = recipe.tokenizer.vocab_size, recipe.sequence_length
    torch.manual_seed(recipe.seed)
    if recipe.base is None:
        return family, family.build(vocab_size, length, pad_id).to(place()).train()
    if base is None:
        raise ValueError(f"{recipe.collaboration} begins with a base, and its files are not here")
    model = (family.outline if streams else family.load)(base, vocab_size, length)
    dtype = next(model.parameters()).dtype
    if (adapter := catalogue.adapter_of(recipe)) is not None:
        adapter.attach(model, recipe.base, recipe.seed)
    if streams:
        stream(model, family.layers(model), base, place(), dtype)
    is_placed = getattr(model, "is_quantized", False)  # and cannot be moved
    return family, (model if is_placed else model.to(place())).train()


def place() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def trainable(model: Any) -> list[tuple[str, Any]]:
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]


@torch.no_grad()
def measure(family: Any, model: Any, batches: Iterable[Batch]) -> tuple[float, int]:
    """Sum of the losses of the target tokens, and their number: in fp32, so alike everywhere."""
    loss, tokens = 0.0, 0
    for batch in batches:
        loss += float(family.loss_sum(model, batch.to(place())))
        tokens += batch.tokens
    return loss, tokens
