"""Which tokens a masked language model has to guess, and what it sees in their place."""

from __future__ import annotations

import torch
from torch import Tensor

from trainer.families.base import Batch
from trainer.text.tokenizer import Tokenizer

CHOSEN_SHARE = 0.15
MASK_SHARE = 0.8
RANDOM_SHARE = 0.1  # what is left keeps its own token


def mask(ids: Tensor, tokenizer: Tokenizer, generator: torch.Generator) -> Batch | None:
    """The batch to learn from `ids`, shape (sequences, length); None when nothing can be chosen.

    Padding and special tokens are never chosen; at least one other token always is.
    """
    candidates = ~torch.isin(ids, torch.tensor(sorted(tokenizer.special)))
    if not bool(candidates.any()):
        return None
    chosen = candidates & (torch.rand(ids.shape, generator=generator) < CHOSEN_SHARE)
    if not bool(chosen.any()):
        places = candidates.nonzero()
        row, column = places[torch.randint(len(places), (1,), generator=generator)[0]]
        chosen[row, column] = True
    draw = torch.rand(ids.shape, generator=generator)
    inputs = ids.clone()
    inputs[chosen & (draw < MASK_SHARE)] = tokenizer.mask
    ordinary = torch.tensor(sorted(set(range(tokenizer.num_tokens)) - tokenizer.special))
    other = ordinary[torch.randint(len(ordinary), ids.shape, generator=generator)]
    swapped = chosen & (draw >= MASK_SHARE) & (draw < MASK_SHARE + RANDOM_SHARE)
    inputs[swapped] = other[swapped]
    targets = ids.masked_fill(~chosen, Batch.IGNORE)
    return Batch(inputs, targets, (ids != tokenizer.pad).long())
