"""Whether a recipe's tokenizer serves its model, as far as the file of the site tells."""

from __future__ import annotations

import json

from trainer import catalogue
from trainer.recipe import Recipe
from trainer.tokenizing import HIDING, MADE_FOR
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.storage import absolute_path


def why_unfit(recipe: Recipe) -> str:
    """In words; "" where it fits, where a base names its own tokens, and where nobody can tell."""
    family = catalogue.create("families", recipe.family)
    kind = family.objective.kind
    if recipe.base is not None or kind not in HIDING:
        return ""
    sha256 = recipe.tokenizer.file.sha256
    artifact = Artifact.objects.filter(kind=Kind.TOKENIZER, sha256=sha256).first()
    try:
        content = json.loads(absolute_path(artifact.path).read_bytes()) if artifact else {}
        special = {token["content"] for token in content["added_tokens"]}
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    if special & set(HIDING[kind]):
        return ""
    return (
        f"{artifact} has no token that stands for what is hidden, and {family.label} learns by "
        f"guessing that: choose a tokenizer made for {MADE_FOR[kind]}, or another model."
    )
