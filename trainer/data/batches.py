"""Batches for a model family, from sequences of token ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Literal

import torch
from torch import Tensor

from trainer.data.corruption import corrupt
from trainer.data.masking import mask
from trainer.data.packing import pack
from trainer.data.spans import window
from trainer.families.base import Batch
from trainer.text.tokenizer import Tokenizer

Objective = Literal["masked", "causal", "spans"]


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
    cut = window(length) if objective == "spans" else length
    sequences = pack(documents, tokenizer, cut, framed=objective == "masked")
    while rows := list(islice(sequences, size())):
        batch = _batch(rows, tokenizer, objective, length, generator)
        if batch is not None and batch.tokens:
            yield batch


def _batch(
    rows: list[list[int]],
    tokenizer: Tokenizer,
    objective: Objective,
    length: int,
    generator: torch.Generator,
) -> Batch | None:
    if objective == "spans":
        return corrupt(rows, tokenizer, generator)
    ids, attention = _padded(rows, length, tokenizer.pad)
    if objective == "masked":
        return mask(ids, tokenizer, generator)
    return _all_after_the_first(ids, attention)


def _padded(rows: list[list[int]], length: int, pad: int) -> tuple[Tensor, Tensor]:
    """Ids, and 1 for each that is no padding: some tokenizers end documents with the pad token."""
    ids = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    lengths = torch.tensor([[len(row)] for row in rows])
    return ids, (torch.arange(length) < lengths).long()


def _all_after_the_first(ids: Tensor, attention: Tensor) -> Batch:
    targets = ids.masked_fill(attention == 0, Batch.IGNORE)
    targets[:, 0] = Batch.IGNORE  # nothing comes before it
    return Batch(ids, targets, attention)
