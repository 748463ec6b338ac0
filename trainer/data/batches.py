"""Batches for a model family, from sequences of token ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

import torch
from torch import Tensor

from trainer.data.corruption import corrupt
from trainer.data.masking import mask
from trainer.data.packing import pack, room
from trainer.data.pairs import pair_up
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
    generator = torch.Generator().manual_seed(seed)
    if objective.pairs:
        found = _paired(documents, tokenizer, objective, length, size, generator)
    else:
        found = _packed(documents, tokenizer, objective, length, size, generator)
    return (batch for batch in found if batch is not None and batch.tokens)


def _packed(
    documents: Iterable[str],
    tokenizer: Tokenizer,
    objective: Objective,
    length: int,
    size: Callable[[], int],
    generator: torch.Generator,
) -> Iterator[Batch | None]:
    taken = window(length) if objective.kind == "spans" else length
    sequences = pack(documents, tokenizer, taken, framed=objective.kind == "masked")
    while rows := list(islice(sequences, size())):
        if objective.kind == "spans":
            yield corrupt(rows, tokenizer, generator)
            continue
        ids, attention = _padded(rows, length, tokenizer.pad)
        if objective.kind == "masked":
            yield mask(ids, tokenizer, generator, objective.whole_words)
        elif objective.kind == "prefix":
            yield cut(ids, attention, generator)
        else:
            yield _all_after_the_first(ids, attention)


def _paired(
    documents: Iterable[str],
    tokenizer: Tokenizer,
    objective: Objective,
    length: int,
    size: Callable[[], int],
    generator: torch.Generator,
) -> Iterator[Batch | None]:
    pairs = pair_up(documents, tokenizer, room(objective, length), generator)
    while rows := list(islice(pairs, size())):
        ids, _ = _padded([pair.ids for pair in rows], length, tokenizer.pad)
        masked = mask(ids, tokenizer, generator, objective.whole_words)
        if masked is None:
            continue
        first = torch.tensor([[pair.first] for pair in rows])
        segments = (torch.arange(length) >= first) & (masked.attention == 1)
        swapped = torch.tensor([pair.is_swapped for pair in rows])
        yield replace(masked, segments=segments.long(), swapped=swapped.long())


def _padded(rows: list[list[int]], length: int, pad: int) -> tuple[Tensor, Tensor]:
    """Ids, and 1 for each that is no padding: some tokenizers end documents with the pad token."""
    ids = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    lengths = torch.tensor([[len(row)] for row in rows])
    return ids, (torch.arange(length) < lengths).long()


def _all_after_the_first(ids: Tensor, attention: Tensor) -> Batch:
    targets = ids.masked_fill(attention == 0, Batch.IGNORE)
    targets[:, 0] = Batch.IGNORE  # nothing comes before it
    return Batch(ids, targets, attention)
