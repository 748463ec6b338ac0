"""Opens the collaboration that a ready recipe describes, with all that belongs to it."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import transaction
from pydantic import ValidationError

from trainer.parts import first_problem
from trainer.recipe import Recipe
from webapp.accounts.models import User
from webapp.artifacts.models import Artifact
from webapp.collaborations import services
from webapp.collaborations.models import Collaboration
from webapp.collaborations.text_addresses import fetch_problem
from webapp.core.errors import UserError
from webapp.recipes import tasks, texts, tokenizer
from webapp.recipes.ready import Published, Ready

NEVER = threading.Event()


def open_ready(
    ready: Ready,
    *,
    by: User,
    slug: str = "",
    tell: Callable[[str], None] = print,
    stopping: threading.Event = NEVER,
) -> tuple[Collaboration, bool]:
    """The collaboration, and whether it is new: the same recipe is opened once under a `slug`
    (default: the recipe's own).

    Takes as long as its tokenizer, and tells of that. Raises UserError: something that it needs is
    not here, or the address is another collaboration's.
    """
    if slug:
        ready = _called(slug, ready)
    if (existing := _opened(ready)) is not None:
        return existing, False
    labelled = tasks.labelled_of(ready)
    with tempfile.TemporaryDirectory(dir=settings.DATA_DIR) as name:
        folder = Path(name)
        found = texts.find(ready, folder)
        made = tokenizer.find(ready, found.files, folder, by=by, tell=tell, stopping=stopping)
    recipe = _recipe(ready, made, found)
    if why := fetch_problem(recipe):
        raise UserError(why, "Try again, or change the recipe's file.")
    tasks.write(labelled)
    return _create(ready, recipe, found, by), True


def _called(slug: str, ready: Ready) -> Ready:
    """Raises UserError when `slug` cannot be part of an address."""
    try:
        return Ready.model_validate(
            ready.model_dump() | {"recipe": ready.recipe | {"collaboration": slug}}
        )
    except ValidationError as error:
        raise UserError(f"{slug!r} is no short name: {first_problem(error)}.") from error


def _opened(ready: Ready) -> Collaboration | None:
    """The one that was opened from it. Raises UserError when its address has another."""
    slug = ready.recipe["collaboration"]
    existing = Collaboration.objects.filter(slug=slug).first()
    if existing is None:
        return None
    if others := _differences(existing.recipe, ready):
        raise UserError(
            f"There is another collaboration at /c/{slug}/ already: {existing.title}. "
            f"Not as in this recipe: {', '.join(others)}.",
            "Choose another short name with --slug.",
        )
    return existing


def _differences(recipe: Recipe, ready: Ready) -> list[str]:
    """The parts of `recipe` that are not as `ready` says; hashes of files that are made anew with
    each release of a package do not count, nor does what is held out of them."""
    wanted = ready.outline()
    rest = set(Recipe.model_fields) - {"texts", "tokenizer", "held_out"}
    found = {name for name in rest if getattr(recipe, name) != getattr(wanted, name)}
    pairs = list(zip(recipe.texts, ready.texts, strict=False))
    if len(recipe.texts) != len(ready.texts) or not all(texts.is_made_of(*pair) for pair in pairs):
        found.add("texts")
    if not tokenizer.may_be(recipe.tokenizer.vocab_size, ready.tokenizer):
        found.add("tokenizer")
    return [name.replace("_", " ") for name in Recipe.model_fields if name in found]


def _recipe(ready: Ready, made: Artifact, found: texts.Texts) -> Recipe:
    """Published models have as many rows as was published, whatever their tokenizer uses."""
    size = made.vocab_size or ready.tokenizer.size
    if isinstance(ready.tokenizer, Published):
        size = ready.tokenizer.size
    return ready.made_of(texts.file_of(made), size, found.texts, found.held_out_text)


@transaction.atomic
def _create(ready: Ready, recipe: Recipe, found: texts.Texts, by: User) -> Collaboration:
    collaboration = services.create(title=ready.title, summary=ready.summary, recipe=recipe, by=by)
    services.open_(collaboration, by=by)
    tasks.enter(ready, collaboration, found.held_out, by=by)
    return collaboration
