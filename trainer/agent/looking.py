"""`python -m trainer data`: ten batches of a recipe and what was counted of its texts, as JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pydantic import ValidationError

from trainer.launcher.place import Unusable
from trainer.parts import first_problem
from trainer.recipe import Recipe
from trainer.text.tokenizer import TokenizerError


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", type=argparse.FileType("rb"), help="JSON; -: standard input")
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="NUMBER=FILE",
        help="where a text of the recipe lies, counted from 1; those on the web need none",
    )
    parser.set_defaults(act=show)


def show(given: argparse.Namespace) -> int:
    """Raises Unusable in words."""
    from trainer.engine.look import look

    try:
        recipe = Recipe.model_validate_json(given.recipe.read())
        found = look(recipe, _paths(given.text, len(recipe.texts)), given.tokenizer)
    except ValidationError as error:
        raise Unusable(f"The recipe cannot be used: {first_problem(error)}.") from error
    except (TokenizerError, ValueError) as error:
        raise Unusable(f"{error}.") from error
    print(json.dumps(found, ensure_ascii=False, indent=1))
    return 0


def _paths(words: list[str], num_texts: int) -> list[Path | None]:
    """Of each text of the recipe. Raises Unusable."""
    found: list[Path | None] = [None] * num_texts
    for word in words:
        number, _, file = word.partition("=")
        if not (number.isdecimal() and file):
            raise Unusable(f"--text {word}: write it as NUMBER=FILE, like 1=poems.txt.")
        if not 1 <= int(number) <= num_texts:
            raise Unusable(
                f"--text {word}: the recipe has no text {number}, its last is text {num_texts}."
            )
        found[int(number) - 1] = Path(file)
    return found
