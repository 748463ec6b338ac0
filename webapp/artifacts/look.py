"""What a recipe makes of its texts: asked of the trainer, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.cache import cache

from trainer.recipe import File, Recipe
from webapp.artifacts.models import Artifact
from webapp.artifacts.storage import absolute_path
from webapp.core.errors import UserError
from webapp.core.processes import follow_parent_into_death

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
        done = subprocess.run(
            [sys.executable, "-m", "trainer", *words],
            cwd=settings.BASE_DIR,
            env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            input=recipe.encode(),
            capture_output=True,
            timeout=LONGEST_S,
            preexec_fn=_modestly,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"There was no answer within {LONGEST_S:.0f} s.",
            "A text on the web may be slow, or a packed one large: try again later.",
        ) from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"It cannot be shown: {lines[-1][:300] if lines else 'no reason'}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _modestly() -> None:
    follow_parent_into_death()
    os.nice(NICE)


def _on_disk(file: File) -> Path:
    found = Artifact.objects.filter(sha256=file.sha256).first()
    path = absolute_path(found.path) if found else None
    if path is None or not path.is_file():
        raise UserError(f"The site does not have {file.filename} any more.")
    return path
