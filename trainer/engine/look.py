"""What a recipe makes of its texts, for people to look at before anybody trains on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from trainer import catalogue
from trainer.data.mixture import open_source
from trainer.engine.texts import training_batches
from trainer.families.base import Batch
from trainer.recipe import Recipe, Text
from trainer.sources.base import SourceUnavailable
from trainer.text.tokenizer import Tokenizer

BATCHES, SHOWN_ROWS = 10, 2
DOCUMENTS = 2_000  # of each text, to count what is broken and what is there twice
ELSEWHERE = ("local", "private")


def look(recipe: Recipe, paths: Sequence[Path | None], tokenizer_file: Path) -> dict[str, Any]:
    """Ten batches, decoded, and what was counted of each text.

    `paths`: the local files of `recipe.texts`, in order; None where there is none. What cannot be
    read has a `problem` in words, and there are batches of the others. `target_share`: of
    what is no padding, how much a masked model is to guess; None for other models.
    Raises TokenizerError.
    """
    tokenizer = Tokenizer.of(recipe, tokenizer_file)
    objective = catalogue.family_of(recipe).objective
    texts = [_counted(*one, recipe.seed) for one in zip(recipe.texts, paths, strict=True)]
    good = [number for number, text in enumerate(texts) if not text["problem"]]
    batches: list[Batch] = []
    if good:
        readable = recipe.model_copy(update={"texts": tuple(recipe.texts[one] for one in good)})
        found = tuple(paths[one] for one in good)
        endless = training_batches(readable, found, tokenizer, objective, f"{recipe.seed}/look")
        batches = list(islice(endless, BATCHES))
    places = sum(batch.ids.numel() for batch in batches)
    filled = sum(int(batch.attention.sum()) for batch in batches)
    targets = sum(batch.tokens for batch in batches)
    return {
        "texts": texts,
        "batches": [_shown(batch, tokenizer, objective.kind) for batch in batches],
        "samples": sum(batch.samples for batch in batches),
        "padding_share": (places - filled) / max(1, places),
        "target_share": targets / max(1, filled) if objective.kind == "masked" else None,
    }


def _counted(text: Text, path: Path | None, seed: int) -> dict[str, Any]:
    """Of the first documents in an order of their own."""
    seen: set[str] = set()
    documents = characters = 0
    problem = "" if path or text.kind not in ELSEWHERE else "It lies on each device, not here."
    tally: dict[str, Any] = {}
    if not problem:
        source = open_source(text, path)
        try:
            for document in islice(source.documents(f"{seed}/look"), DOCUMENTS):
                documents += 1
                characters += len(document)
                seen.add(document)
        except SourceUnavailable as error:
            problem = str(error)
        tally = asdict(source.tally)
        if not documents:
            problem = problem or "It has no readable line."
    counted = {"documents": documents, "characters": characters}
    return tally | counted | {"duplicates": documents - len(seen), "problem": problem}


def _shown(batch: Batch, tokenizer: Tokenizer, kind: str) -> list[dict[str, Any]]:
    """The first sequences of a batch."""
    rows = []
    for number in range(min(SHOWN_ROWS, batch.samples)):
        length = int(batch.attention[number].sum())
        read, wanted = batch.ids[number, :length].tolist(), batch.targets[number].tolist()
        if kind == "masked":
            rows.append({"parts": _parts(read, wanted[:length], tokenizer), "written": ""})
            continue
        written = [one for one in wanted if one != Batch.IGNORE] if kind != "causal" else []
        given = read[: length - len(written)] if kind == "prefix" else read
        parts = [{"text": tokenizer.decode(given), "hidden": None}]
        rows.append({"parts": parts, "written": tokenizer.decode(written)})
    return rows


def _parts(ids: list[int], targets: list[int], tokenizer: Tokenizer) -> list[dict[str, str | None]]:
    """What the model sees, in parts; `hidden` is what it has to guess in the place of one, which
    is "" where a word only begins; None: nothing."""
    parts: list[dict[str, str | None]] = []
    pairs = zip(ids, targets, strict=True)
    for is_shown, run in groupby(pairs, key=lambda pair: pair[1] == Batch.IGNORE):
        found = list(run)
        if is_shown:
            parts.append({"text": tokenizer.decode([one for one, _ in found]), "hidden": None})
        else:
            parts += [
                {"text": tokenizer.decode([one]), "hidden": tokenizer.decode([target])}
                for one, target in found
            ]
    return parts
