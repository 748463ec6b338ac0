"""What a recipe makes of its texts: asked of the trainer, in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.cache import cache

from trainer.recipe import File, Recipe
from webapp.artifacts.models import Artifact
from webapp.artifacts.storage import absolute_path
from webapp.core.answers import ask
from webapp.core.errors import UserError

LONGEST_S = 60.0
NICE = 10
TURN = "look-at-data"


def look(recipe: Recipe) -> dict[str, Any]:
    """As `trainer.engine.look` tells it; one at a time. Raises UserError when there is no answer.

    Texts that lie on each device are not read, whatever path they have.
    """
    words = ["data", "-", "--tokenizer", str(_on_disk(recipe.tokenizer.file))]
    files = [(n, text.file) for n, text in enumerate(recipe.texts, 1) if text.file]
    places = {number: str(_on_disk(file)) for number, file in files}
    words += [f"--text={number}={place}" for number, place in places.items()]
    if not cache.add(TURN, True, timeout=2 * LONGEST_S):
        raise UserError("Another look at data is going on.", "Try again in a minute.", kind="wait")
    try:
        found = _answer(words, recipe.canonical())
    finally:
        cache.delete(TURN)
    for number, file in files:  # where the site keeps it is no matter of the page
        text, place = found["texts"][number - 1], places[number]
        for key in ("problem", "first_broken"):
            text[key] = text[key].replace(place, file.filename)
    return found


def _answer(words: list[str], recipe: str) -> dict[str, Any]:
    try:
        said, why = ask(words, recipe.encode(), longest_s=LONGEST_S, nice=NICE)
    except TimeoutError as error:
        raise UserError(
            f"There was no answer within {LONGEST_S:.0f} s.",
            "A text on the web may be slow, or a packed one large: try again later.",
        ) from error
    if said is None:
        raise UserError(f"It cannot be shown: {why[:300]}")
    found: dict[str, Any] = json.loads(said)
    return found


def _on_disk(file: File) -> Path:
    found = Artifact.objects.filter(sha256=file.sha256).first()
    path = absolute_path(found.path) if found else None
    if path is None or not path.is_file():
        raise UserError(f"The site does not have {file.filename} any more.")
    return path
