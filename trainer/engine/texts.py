"""The endless batches of one peer, and the finite ones of the held-out text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from trainer.data.batches import Objective, batches, marked_batches
from trainer.data.marks import Mark
from trainer.data.mixture import Mixture, open_source
from trainer.data.shards import Leases, SharedText
from trainer.families.base import Batch
from trainer.recipe import Recipe
from trainer.sources.private import PrivateSource
from trainer.text.tokenizer import Tokenizer

STARTS = "starts"
OWN_ROWS = 4  # of a batch of a volunteer's held-out texts
ROWS = 8  # of a batch, where neither the recipe nor a device says how many


def count_start(folder: Path) -> int:
    """How often this peer has started, this time included: no start repeats another's order."""
    path = folder / STARTS
    try:
        number = int(path.read_text()) + 1
    except (OSError, ValueError):
        number = 1
    path.write_text(str(number))
    return number


def training_batches(
    recipe: Recipe,
    paths: tuple[Path | None, ...],
    tokenizer: Tokenizer,
    objective: Objective,
    seed: str,
    size: Callable[[], int] | None = None,
) -> Iterator[Batch]:
    """Of all of the texts; `size` says before each batch how many sequences it has; without it the
    recipe does.

    Raises SourceUnavailable, while iterating, when a text cannot be read.
    """
    found = shared_batches(
        recipe, paths, tokenizer, objective, seed, size or (lambda: recipe.micro_batch or ROWS)
    )
    return (batch for batch, _ in found)


def shared_batches(
    recipe: Recipe,
    paths: tuple[Path | None, ...],
    tokenizer: Tokenizer,
    objective: Objective,
    seed: str,
    size: Callable[[], int],
    leases: Leases | None = None,
) -> Iterator[tuple[Batch, Mark]]:
    """With `leases` the texts are shared out, but for those that lie on the device itself; each
    batch comes with how far it goes in them.
    """
    sources = [open_source(text, path) for text, path in zip(recipe.texts, paths, strict=True)]
    if leases is not None:
        leases.rewind()
        sources = [
            source if text.is_on_device else SharedText(source, number, leases, str(recipe.seed))
            for number, (text, source) in enumerate(zip(recipe.texts, sources, strict=True))
        ]
    mixture = Mixture(sources, [text.weight for text in recipe.texts], seed)
    return marked_batches(
        mixture.documents(),
        tokenizer,
        objective,
        length=recipe.sequence_length,
        size=size,
        seed=_number(seed),
    )


def held_out_batches(
    recipe: Recipe, path: Path, tokenizer: Tokenizer, objective: Objective, samples: int
) -> list[Batch]:
    """The same batches of about so many samples at every start: their losses can be compared."""
    if recipe.held_out is None:
        return []
    documents = open_source(recipe.held_out, path).documents(str(recipe.seed))
    found = batches(
        documents,
        tokenizer,
        objective,
        length=recipe.sequence_length,
        size=lambda: recipe.micro_batch or ROWS,
        seed=recipe.seed,
    )
    return list(islice(found, max(1, samples // (recipe.micro_batch or ROWS))))


def own_batches(
    recipe: Recipe, path: Path, tokenizer: Tokenizer, objective: Objective, samples: int
) -> list[Batch]:
    """Of what a volunteer's own texts hold out, the same at every start; perhaps none."""
    found = batches(
        PrivateSource(path).held_out(),
        tokenizer,
        objective,
        length=recipe.sequence_length,
        size=lambda: OWN_ROWS,
        seed=recipe.seed,
    )
    return list(islice(found, samples // OWN_ROWS))


def own_training_batches(
    recipe: Recipe, path: Path, tokenizer: Tokenizer, objective: Objective, seed: str, rows: int
) -> Iterator[Batch]:
    """Of a volunteer's own texts alone, endless. Raises SourceUnavailable, while iterating."""
    documents = Mixture([PrivateSource(path)], [1.0], seed)
    return batches(
        documents,
        tokenizer,
        objective,
        length=recipe.sequence_length,
        size=lambda: rows,
        seed=_number(seed),
    )


def _number(seed: str) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:7], "big")
