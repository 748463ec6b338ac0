"""The model of a recipe, with the same first parameters wherever it is built."""

from __future__ import annotations

from typing import Any

import torch

from trainer import catalogue
from trainer.recipe import Recipe


def build(recipe: Recipe, pad_id: int) -> tuple[Any, Any]:
    """Its family, and a model of it on the GPU, if there is one, ready to train."""
    family = catalogue.create("families", recipe.family)
    torch.manual_seed(recipe.seed)
    model = family.build(recipe.tokenizer.vocab_size, recipe.sequence_length, pad_id)
    return family, model.to(place()).train()


def place() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def trainable(model: Any) -> list[tuple[str, Any]]:
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]
