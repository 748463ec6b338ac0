"""Batches for a model family, from sequences of token ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from trainer.data.corruption import corrupt
from trainer.data.marks import Document, Mark, Track
from trainer.data.masking import mask
from trainer.data.packing import pack_tracked, room
from trainer.data.pairs import pair_up_tracked
from trainer.data.prefix import cut
from trainer.data.spans import window
from trainer.families.base import Batch, Objective
from trainer.text.tokenizer import Tokenizer


def batches(
    documents: Iterable[str],
    tokenizer: Tokenizer,
    objective: Objective,
    *,
    length: int,
    size: Callable[[], int],
    seed: int,
) -> Iterator[Batch]:
    """Batches of `size()` sequences of at most `length` ids.

    A finite stream may end with a smaller one; a batch without a single target is left out.
    """
    known = map(Document, documents)
    found = marked_batches(known, tokenizer, objective, length=length, size=size, seed=seed)
    return (batch for batch, _ in found)


def marked_batches(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    objective: Objective,
    *,
    length: int,
    size: Callable[[], int],
    seed: int,
) -> Iterator[tuple[Batch, Mark]]:
    """The same batches, each with how far it goes in the texts that the documents come from."""
    generator, track = torch.Generator().manual_seed(seed), Track()
    make = _paired if objective.pairs else _packed
    for batch in make(documents, tokenizer, objective, length, size, generator, track):
        if batch is not None and batch.tokens:
            yield batch, track.mark()


def _packed(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    objective: Objective,
    length: int,
    size: Callable[[], int],
    generator: torch.Generator,
    track: Track,
) -> Iterator[Batch | None]:
    taken = window(length) if objective.kind == "spans" else length
    framed = objective.kind == "masked"
    sequences = pack_tracked(documents, tokenizer, taken, framed, track)
    while rows := list(islice(sequences, size())):
        if objective.kind == "spans":
            yield corrupt(rows, tokenizer, generator)
            continue
        ids = _padded(rows, length, tokenizer.pad)
        if objective.kind == "masked":
            yield mask(ids, tokenizer, generator, objective.whole_words)
        elif objective.kind == "prefix":
            yield cut(ids, _attention(rows, length), generator)
        else:
            yield _all_after_the_first(ids, _attention(rows, length))


def _paired(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    objective: Objective,
    length: int,
    size: Callable[[], int],
    generator: torch.Generator,
    track: Track,
) -> Iterator[Batch | None]:
    pairs = pair_up_tracked(documents, tokenizer, room(objective, length), generator, track)
    while rows := list(islice(pairs, size())):
        ids = _padded([pair.ids for pair in rows], length, tokenizer.pad)
        masked = mask(ids, tokenizer, generator, objective.whole_words)
        if masked is None:
            continue
        first = torch.tensor([[pair.first] for pair in rows])
        segments = (torch.arange(length) >= first) & (masked.attention == 1)
        swapped = torch.tensor([pair.is_swapped for pair in rows])
        yield replace(masked, segments=segments.long(), swapped=swapped.long())


def _padded(rows: list[list[int]], length: int, pad: int) -> Tensor:
    ids = np.full((len(rows), length), pad, dtype=np.int64)
    for place, row in zip(ids, rows, strict=True):
        place[: len(row)] = np.fromiter(row, np.int64, len(row))
    return torch.from_numpy(ids)


def _attention(rows: list[list[int]], length: int) -> Tensor:
    """1 for each that is no padding: some tokenizers end documents with the pad token."""
    lengths = torch.tensor([[len(row)] for row in rows])
    return (torch.arange(length) < lengths).long()


def _all_after_the_first(ids: Tensor, attention: Tensor) -> Batch:
    targets = ids.masked_fill(attention == 0, Batch.IGNORE)
    targets[:, 0] = Batch.IGNORE  # nothing comes before it
    return Batch(ids, targets, attention)
