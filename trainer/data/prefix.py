"""Texts cut in two: a prefix that is given, and the rest, which is to be written.

Raffel et al. 2020 (T5), section 3.2.3: the place of the cut is drawn evenly.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trainer.families.base import Batch


def cut(ids: Tensor, attention: Tensor, generator: torch.Generator) -> Batch:
    """Targets are what comes after the prefix; both have one token at least, where there are two.

    `ids` and `attention` are of shape (sequences, length), padded at the end.
    """
    lengths = attention.sum(1, keepdim=True)
    drawn = torch.rand(lengths.shape, generator=generator)
    prefix = 1 + (drawn * (lengths - 1)).long()
    is_given = torch.arange(ids.shape[1]) < prefix
    return Batch(ids, ids.masked_fill(is_given | (attention == 0), Batch.IGNORE), attention)
