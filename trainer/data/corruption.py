"""Span corruption: a text with gaps to read, and what was in the gaps to write.

Raffel et al. 2020 (T5), section 3.1.4: 15 % of the tokens, in spans of three on average. Each span
is one sentinel in the input; the target is each sentinel with its span, and the end token.
"""

from __future__ import annotations

import torch

from trainer.data.spans import num_hidden
from trainer.families.base import Batch
from trainer.text.tokenizer import Tokenizer


def corrupt(
    rows: list[list[int]], tokenizer: Tokenizer, generator: torch.Generator
) -> Batch | None:
    """The batch to learn from these token ids; rows of less than two ids are left out.

    Raises TokenizerError where there are more spans than sentinels.
    """
    pairs = [_pair(row, tokenizer, generator) for row in rows if len(row) > 1]
    if not pairs:
        return None
    inputs, targets = zip(*pairs, strict=True)
    ids = torch.full((len(pairs), max(map(len, inputs))), tokenizer.pad)
    wanted = torch.full((len(pairs), max(map(len, targets))), Batch.IGNORE)
    attention = torch.zeros_like(ids)
    for number, (read, written) in enumerate(pairs):
        ids[number, : len(read)] = torch.tensor(read)
        attention[number, : len(read)] = 1
        wanted[number, : len(written)] = torch.tensor(written)
    return Batch(ids, wanted, attention)


def _pair(
    row: list[int], tokenizer: Tokenizer, generator: torch.Generator
) -> tuple[list[int], list[int]]:
    """What is read and what is to be written; a row begins with a token that is not hidden."""
    hidden, spans = num_hidden(len(row))
    sentinels = tokenizer.sentinels(spans)
    read: list[int] = []
    written: list[int] = []
    place = 0
    shown_parts = _parts(len(row) - hidden, spans, generator)
    hidden_parts = _parts(hidden, spans, generator)
    for sentinel, shown, gap in zip(sentinels, shown_parts, hidden_parts, strict=True):
        read += [*row[place : place + shown], sentinel]
        written += [sentinel, *row[place + shown : place + shown + gap]]
        place += shown + gap
    return [*read, tokenizer.end], [*written, tokenizer.end]


def _parts(total: int, count: int, generator: torch.Generator) -> list[int]:
    """`total` cut at random into so many parts of at least one."""
    cuts = (torch.randperm(total - 1, generator=generator)[: count - 1] + 1).sort().values
    edges = torch.cat([torch.tensor([0]), cuts, torch.tensor([total])])
    return (edges[1:] - edges[:-1]).tolist()  # type: ignore[no-any-return]
