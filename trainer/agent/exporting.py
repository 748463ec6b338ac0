"""`python -m trainer export`: a checkpoint as a model folder that others load."""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import ValidationError

from trainer.agent.files import Files
from trainer.launcher import web
from trainer.launcher.place import Unusable, data_folder
from trainer.parts import first_problem
from trainer.recipe import Base, Recipe
from trainer.text.saving import save_tokenizer
from trainer.text.tokenizer import Tokenizer


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=Path, help="a file that the site or coordinator has")
    parser.add_argument("folder", type=Path, help="where the model goes")
    parser.add_argument("--recipe", type=Path, required=True, help="JSON file of its recipe")
    parser.add_argument(
        "--tokenizer", type=Path, default=None, help="its tokenizer.json, to stand beside the model"
    )
    parser.add_argument("--base", type=Path, default=None, help="folder with the recipe's base")
    parser.add_argument("--site", default="", help="address of the site, where it has the base")
    parser.set_defaults(act=export)


def export(given: argparse.Namespace) -> int:
    """Raises Unusable in words."""
    recipe = read_recipe(given.recipe)
    try:
        base = find_base(recipe.base, given.base, given.site.rstrip("/"))
        from trainer.engine import export as engine

        pad_id, end_id = _special(recipe, given.tokenizer)
        engine.export(given.checkpoint, recipe, base, pad_id, given.folder, end_id)
        if given.tokenizer is not None:
            save_tokenizer(recipe, given.tokenizer, given.folder)
    except OSError as error:
        place = error.filename or given.folder
        raise Unusable(f"{place} cannot be used: {error.strerror or error}.") from error
    except ValueError as error:
        raise Unusable(f"This cannot be exported: {error}.") from error
    print(f"{given.folder} holds the model: from_pretrained loads it.")
    if (given.folder / engine.ADAPTER).exists():
        print(f"{given.folder / engine.ADAPTER} holds the adapter alone, for PEFT.")
    return 0


def _special(recipe: Recipe, tokenizer: Path | None) -> tuple[int, int | None]:
    """The ids of what fills a batch up and ends a text: 0 and None where nobody says.

    Raises ValueError.
    """
    if tokenizer is None:
        return 0, None
    if web.sha256_of(tokenizer) != recipe.tokenizer.file.sha256:
        raise ValueError(f"{tokenizer} is not the recipe's tokenizer: its SHA-256 differs")
    found = Tokenizer.of(recipe, tokenizer)
    return found.pad, found.end


def read_recipe(path: Path) -> Recipe:
    """Raises Unusable."""
    try:
        return Recipe.model_validate_json(path.read_bytes())
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValidationError as error:
        raise Unusable(f"{path} is no recipe: {first_problem(error)}") from error


def find_base(base: Base | None, folder: Path | None, site: str) -> Path | None:
    """Fetched, or in `folder`; checked in any case. Raises Unusable."""
    if base is None:
        return None
    if folder is not None:
        base = base.model_copy(update={"kind": "local", "place": str(folder)})
    elif base.kind == "site" and not site:
        raise Unusable("The base is a file of the site: give --site, or --base FOLDER.")
    try:
        return Files(site, data_folder() / "files").fetch_base(base)
    except (web.Unreachable, web.Refusal, web.Damaged) as error:
        raise Unusable(str(error)) from error
