"""A checkpoint as others use it: a folder that `from_pretrained` loads, the adapter merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from trainer import catalogue
from trainer.adapter_files import adapter_files
from trainer.engine.learner import Learner
from trainer.recipe import Recipe

ADAPTER = "adapter"  # folder in the folder


def export(
    path: Path,
    recipe: Recipe,
    base: Path | None,
    pad_id: int,
    folder: Path,
    end_id: int | None = None,
) -> None:
    """Writes the model of checkpoint `path` into `folder`, in float32, and an adapter beside it.

    `base`: the folder with the recipe's. `end_id`: of the token that ends a text, if that is known.
    Raises ValueError (BadCheckpoint among them) and OSError.
    """
    learner = Learner(recipe, pad_id, base)
    learner.load(path)
    folder.mkdir(parents=True, exist_ok=True)
    model, adapter = learner.model, catalogue.adapter_of(recipe)
    if adapter is not None:
        assert base is not None, "a learner of a base has its folder"
        is_beside = adapter.in_peft
        model = _merged(learner, path, base, folder / ADAPTER) if is_beside else _put(learner, base)
    model.config.use_cache = True
    if model.can_generate():
        _end_texts(model, end_id if recipe.base is None else None)
    model.cpu().save_pretrained(folder)


def _end_texts(model: Any, end_id: int | None) -> None:
    """What it writes ends where its training texts do; a base knows that itself."""
    model.generation_config.use_cache = True
    if end_id is not None:
        model.config.eos_token_id = model.generation_config.eos_token_id = end_id


def _merged(learner: Learner, path: Path, base: Path, folder: Path) -> Any:
    """As anybody would do it, through the adapter's files; each of their values has to arrive.

    PEFT does not say so where one does not.
    """
    from peft import PeftModel

    folder.mkdir(exist_ok=True)
    for name, content in adapter_files(path, learner.recipe).items():
        (folder / name).write_bytes(content)
    adapted: Any = PeftModel.from_pretrained(_whole(learner, base), folder)
    found = dict(adapted.base_model.model.named_parameters())
    for name, param in learner.model.named_parameters():
        if ".lora_" in name and not torch.equal(found[name].cpu(), param.cpu()):
            raise ValueError(f"{name} of {path.name} did not arrive in the exported model")
    return adapted.merge_and_unload()


def _put(learner: Learner, base: Path) -> Any:
    """The base with what has trained in its place."""
    model = _whole(learner, base)
    found = dict(model.named_parameters())
    with torch.no_grad():
        for name, param in zip(learner.names, learner.params, strict=True):
            found[name].copy_(param)
    return model


def _whole(learner: Learner, base: Path) -> Any:
    """The base in float32, so that merging rounds nothing."""
    recipe = learner.recipe
    family = type(learner.family)(learner.family.params)
    assert recipe.base is not None, "only a recipe with a base has an adapter"
    family.base = recipe.base.model_copy(update={"precision": "fp32"})
    return family.load(base, recipe.tokenizer.vocab_size, recipe.sequence_length)
