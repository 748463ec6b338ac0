"""How much a volunteer's own texts are: documents, tokens and samples, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.data.packing import room
from trainer.sources.private import HELD_OUT, PrivateSource, files_of, part_of
from trainer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from trainer.families.base import Objective

EXACT_CHARACTERS = 30_000_000  # the tokens of what comes after are estimated from these
SHOWN_EVERY = 10_000  # documents


@dataclass(frozen=True)
class Survey:
    """`tokens` and `samples` are of what is trained on, `num_held_out` documents are not.

    `broken`: lines and rows that could not be read. `left_out`: files, and why.
    """

    num_files: int
    num_documents: int
    num_held_out: int
    tokens: int
    samples: int
    broken: int
    left_out: dict[Path, str]
    is_estimate: bool


def survey(
    path: Path,
    tokenizer: Tokenizer,
    objective: Objective,
    length: int,
    shown: Callable[[int], None] = lambda count: None,
) -> Survey:
    """Reads all of it once. `shown` is told now and then how many documents it has seen.

    Raises OSError when the folder itself cannot be read.
    """
    source = PrivateSource(path)
    splits = source.splits
    documents = held_out = tokens = counted = uncounted = 0
    for number, document in enumerate(source.all(), 1):
        if number % SHOWN_EVERY == 0:
            shown(number)
        if splits and part_of(document) in HELD_OUT:
            held_out += 1
            continue
        documents += 1
        if counted < EXACT_CHARACTERS:
            counted += len(document)
            tokens += len(tokenizer.encode(document))
        else:
            uncounted += len(document)
    tokens += round(uncounted * tokens / max(counted, 1))
    return Survey(
        num_files=len(files_of(path)) - len(source.left_out),
        num_documents=documents + held_out,
        num_held_out=held_out,
        tokens=tokens,
        samples=ceil((tokens + documents) / room(objective, length)),
        broken=source.tally.broken,
        left_out=source.left_out,
        is_estimate=uncounted > 0,
    )
