"""A recipe as the values of the organiser's form: the way back from `forms.py`."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

from trainer.recipe import Base, Recipe
from webapp.collaborations.chosen_texts import key_of
from webapp.collaborations.dataset_field import words_of
from webapp.collaborations.models import Collaboration
from webapp.collaborations.recipe_parts import PARTS
from webapp.collaborations.sizes import size_of


def initial_of(collaboration: Collaboration) -> dict[str, Any]:
    """{name of a field: value}. What the recipe does not say keeps the form's default."""
    recipe = collaboration.recipe
    weights = {key_of(text): text.weight for text in recipe.texts}
    values: dict[str, Any] = {
        "title": collaboration.title,
        "slug": collaboration.slug,
        "summary": collaboration.summary,
        "tokenizer": recipe.tokenizer.file.sha256,
        "base": _key_of(recipe.base) if recipe.base else "",
        "texts": [text.file.sha256 for text in recipe.texts if text.file],
        "text_url": "\n".join(text.url for text in recipe.texts if text.kind == "http"),
        "dataset": "\n".join(words_of(text.dataset) for text in recipe.texts if text.dataset),
        "credits": {key_of(text): text.credit for text in recipe.texts},
        "weights": weights if len(set(weights.values())) > 1 else "",
        "own_texts": recipe.is_private,
        "held_out": recipe.held_out.file.sha256 if recipe.held_out and recipe.held_out.file else "",
        "sequence_length": recipe.sequence_length,
        "micro_batch": recipe.micro_batch,
        "precision": recipe.precision,
        "seed": recipe.seed,
        "is_large": size_of(recipe).is_too_large,
    }
    for of in ("family", "adapter", "strategy"):
        if choice := getattr(recipe, of):
            values[of] = choice.name
            start = f"{of}__{choice.name}__"
            values |= {f"{start}{name}": value for name, value in choice.params.items()}
    for part in PARTS:
        given = getattr(recipe, part).model_dump()
        values |= {f"{part}__{name}": value for name, value in given.items()}
    return values


def _key_of(base: Base) -> str:
    """What the form calls a base: the hash of its description."""
    return hashlib.sha256(base.written().encode()).hexdigest()


def left_out(recipe: Recipe, on_site: Collection[str]) -> list[str]:
    """What the form cannot show of a recipe, in words. `on_site`: hashes of the site's files."""
    named = [("the tokenizer", recipe.tokenizer.file)]
    named += [("the text", text.file) for text in recipe.texts if text.file]
    words = [f"the text {text.path} of each device" for text in recipe.texts if text.path]
    if recipe.base and _key_of(recipe.base) not in on_site:
        words.append("the trained model it begins with, which the site does not offer any more")
    if held_out := recipe.held_out:
        if held_out.file:
            named.append(("the held-out text", held_out.file))
        else:
            dataset = words_of(held_out.dataset) if held_out.dataset else ""
            words.append(f"the held-out text {held_out.url or dataset or held_out.path}")
    return words + [
        f"{what} {file.filename}, which the site does not have any more"
        for what, file in named
        if file.sha256 not in on_site
    ]
