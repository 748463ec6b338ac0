"""Which tokens a masked language model has to guess, and what it sees in their place."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from trainer.families.base import Batch
from trainer.text.tokenizer import Tokenizer

CHOSEN_SHARE = 0.15
MASK_SHARE = 0.8
RANDOM_SHARE = 0.1  # what is left keeps its own token


def mask(
    ids: Tensor, tokenizer: Tokenizer, generator: torch.Generator, whole_words: bool = False
) -> Batch | None:
    """The batch to learn from `ids`, shape (sequences, length); None when nothing can be chosen.

    Padding and special tokens are never chosen; at least one other token always is. Of
    `whole_words` all tokens are chosen, or none. Raises TokenizerError where it has no words.
    """
    special, ordinary = _kinds(tokenizer)
    candidates = ~torch.isin(ids, special)
    if not bool(candidates.any()):
        return None
    words = _words(ids, tokenizer) if whole_words else torch.arange(ids.shape[1]).expand_as(ids)
    draw = torch.rand(ids.shape, generator=generator).gather(1, words)
    chosen = candidates & (draw < CHOSEN_SHARE)
    if not bool(chosen.any()):
        places = candidates.nonzero()
        row, column = places[torch.randint(len(places), (1,), generator=generator)[0]]
        chosen[row] = candidates[row] & (words[row] == words[row, column])
    draw = torch.rand(ids.shape, generator=generator)
    inputs = ids.clone()
    inputs[chosen & (draw < MASK_SHARE)] = tokenizer.mask
    other = ordinary[torch.randint(len(ordinary), ids.shape, generator=generator)]
    swapped = chosen & (draw >= MASK_SHARE) & (draw < MASK_SHARE + RANDOM_SHARE)
    inputs[swapped] = other[swapped]
    targets = ids.masked_fill(~chosen, Batch.IGNORE)
    return Batch(inputs, targets, (ids != tokenizer.pad).long())


def _words(ids: Tensor, tokenizer: Tokenizer) -> Tensor:
    """For each token the number of its word in the sequence; a special token begins one, too."""
    return (_starts(tokenizer)[ids].long().cumsum(1) - 1).clamp(min=0)


@lru_cache(maxsize=2)
def _kinds(tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    """Ids of special tokens, and of all others. Made once: there are tens of thousands."""
    others = set(range(tokenizer.num_tokens)) - tokenizer.special
    return torch.tensor(sorted(tokenizer.special)), torch.tensor(sorted(others))


@lru_cache(maxsize=2)
def _starts(tokenizer: Tokenizer) -> Tensor:
    return torch.tensor(tokenizer.word_starts)
