"""The recipe and its files for a rehearsal: given ones, or a toy that needs none."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

from pydantic import ValidationError

from trainer import catalogue
from trainer.launcher.place import Unusable
from trainer.parts import first_problem
from trainer.recipe import Choice, File, Optimizer, Recipe, Round, Text, Tokenizer
from trainer.text.tokenizer import train_tokenizer

TOY_DOCUMENTS = 400
TOY_VOCABULARY = 300
TOY_MICRO_BATCH = 4
TOY_ROUND_S = 10.0  # with peers of the default speed
WHO = ("the cat", "a small boat", "the old clock", "our neighbour", "a grey heron", "the baker")
DOES = ("looks at", "waits for", "goes past", "listens to", "sings about", "comes back to")
WHAT = ("the river", "the moon", "a loaf of bread", "the harbour", "the morning train")


@dataclass(frozen=True)
class Files:
    tokenizer: Path
    texts: tuple[Path, ...]
    held_out: Path | None


def read_recipe(path: Path) -> Recipe:
    """Raises Unusable when it is not there or not a recipe of plug-ins that exist."""
    try:
        recipe = Recipe.model_validate_json(path.read_bytes())
        catalogue.check(recipe)
        if recipe.base is not None:
            raise ValueError(
                "each of its peers would hold a trained model; try it with few devices"
            )
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        raise Unusable(f"{path} is not a recipe: {first_problem(error)}") from error
    except ValueError as error:
        raise Unusable(f"{path} cannot be rehearsed here: {error}") from error
    return recipe


def find(recipe: Recipe, folder: Path) -> Files:
    """All files of the recipe in `folder`. Raises Unusable, naming the first that is missing."""
    return Files(
        tokenizer=_by_content(recipe.tokenizer.file, folder),
        texts=tuple(_text(text, folder) for text in recipe.texts),
        held_out=_text(recipe.held_out, folder) if recipe.held_out else None,
    )


def _text(text: Text, folder: Path) -> Path:
    if text.file is not None:
        return _by_content(text.file, folder)
    name = Path(text.path or urlparse(text.url).path).name
    places = [folder / name, *([Path(text.path)] if text.path else [])]
    for place in places:
        if name and place.is_file():
            return place
    raise Unusable(
        f"The recipe reads text from {text.url or text.path}, and a rehearsal downloads nothing: "
        f"put a copy at {folder / name}"
    )


def _by_content(file: File, folder: Path) -> Path:
    """By its name or its hash, as the site keeps it. Its content has to be the recipe's."""
    names = (file.filename, file.sha256, f"{file.sha256}/{file.filename}")
    found = [folder / name for name in names if (folder / name).is_file()]
    for path in found:
        with path.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() == file.sha256:
                return path
    if found:
        raise Unusable(
            f"{found[0]} is not the recipe's {file.filename}: its SHA-256 is not "
            f"{file.sha256[:12]}…. Take the file from the site's /artifacts/{file.sha256}/"
        )
    raise Unusable(
        f"{file.filename} of the recipe is not in {folder}. Name the folder that holds it with "
        "--files, or rehearse with a made-up text: --toy"
    )


def make_toy(folder: Path, peers: int) -> tuple[Recipe, Files]:
    """A tiny model for so many peers, with a text of made-up sentences. Always the same."""
    rng = random.Random("toy")  # noqa: S311 - sentences, not secrets
    text, tokenizer = folder / "toy.txt", folder / "tokenizer.json"
    lines = [
        f"{rng.choice(WHO)} {rng.choice(DOES)} {rng.choice(WHAT)}" for _ in range(TOY_DOCUMENTS)
    ]
    text.write_text("\n".join(lines) + "\n")
    train_tokenizer(lines, tokenizer, TOY_VOCABULARY)
    source = Text(kind="site", file=file_of(text))
    recipe = Recipe(
        collaboration="toy",
        family=Choice(name="causal", params={"hidden": 32, "layers": 1, "heads": 2, "length": 16}),
        strategy=Choice(name="dedloc"),
        tokenizer=Tokenizer(file=file_of(tokenizer), vocab_size=TOY_VOCABULARY),
        texts=(source,),
        held_out=source,
        sequence_length=16,
        micro_batch=TOY_MICRO_BATCH,
        optimizer=Optimizer(learning_rate=1e-2, warmup_rounds=2, schedule="constant"),
        round=Round(
            target_samples=round(TOY_ROUND_S * peers * TOY_MICRO_BATCH),
            deadline_s=60,
            matchmaking_s=4,
        ),
    )
    return recipe, Files(tokenizer, (text,), text)


def file_of(path: Path) -> File:
    """As a recipe names it."""
    content = path.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    return File(sha256=sha256, size_bytes=len(content), filename=path.name)
