"""Files of the site, under their own names in the folder of a program that reads them."""

from __future__ import annotations

from pathlib import Path

from trainer.recipe import Base, Recipe
from webapp.artifacts.models import Artifact
from webapp.artifacts.storage import absolute_path


class Missing(Exception):
    """Something that a program needs and the site does not have; says what."""


def link(sha256: str, place: Path) -> Path:
    """Raises Missing."""
    artifact = Artifact.objects.filter(sha256=sha256).first()
    file = absolute_path(artifact.path) if artifact else None
    if file is None or not file.is_file():
        raise Missing(f"{place.name} ({sha256[:12]}…) is not among the site's files any more.")
    place.symlink_to(file)
    return place


def checkpoint_words(
    recipe: Recipe, sha256: str, round_number: int, folder: Path
) -> tuple[str, list[str]]:
    """A checkpoint's place, and the options that tell a program how it is read; what these name is
    in `folder` then. Raises Missing.
    """
    (folder / "recipe.json").write_text(recipe.model_dump_json())
    file = link(sha256, folder / f"round-{round_number}.safetensors")
    tokenizer = link(recipe.tokenizer.file.sha256, folder / "tokenizer.json")
    named = ["--recipe", str(folder / "recipe.json"), "--tokenizer", str(tokenizer)]
    return str(file), [*named, *_base_words(recipe, folder)]


def _base_words(recipe: Recipe, folder: Path) -> list[str]:
    """Options that name the recipe's base; its files are in `folder` then. Raises Missing."""
    base: Base | None = recipe.base
    if base is None:
        return []
    if base.kind == "local":
        return ["--base", base.place]
    if base.kind != "site":
        raise Missing("The base is not the site's own: add it to the site with manage.py add_base.")
    (folder / "base").mkdir()
    for file in base.files:
        link(file.sha256, folder / "base" / file.filename)
    return ["--base", str(folder / "base")]
