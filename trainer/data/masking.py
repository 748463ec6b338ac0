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
    is_ordinary, ordinary = _kinds(tokenizer)
    candidates = is_ordinary[ids]
    if not bool(candidates.any()):
        return None
    draw = torch.rand(ids.shape, generator=generator)
    words = _words(ids, tokenizer) if whole_words else None
    if words is not None:
        draw = draw.gather(1, words)
    chosen = candidates & (draw < CHOSEN_SHARE)
    if not bool(chosen.any()):
        _choose_one(chosen, candidates, words, generator)
    places = chosen.view(-1).nonzero().squeeze(1)  # few: the rest is worked out for them alone
    true = ids.reshape(-1)[places]
    draw = torch.rand(places.shape, generator=generator)
    other = ordinary[torch.randint(len(ordinary), places.shape, generator=generator)]
    seen = torch.where(draw < MASK_SHARE + RANDOM_SHARE, other, true)
    inputs, targets = ids.clone(), torch.full_like(ids, Batch.IGNORE)
    inputs.view(-1)[places] = seen.masked_fill(draw < MASK_SHARE, tokenizer.mask)
    targets.view(-1)[places] = true
    return Batch(inputs, targets, (ids != tokenizer.pad).long())


def _choose_one(
    chosen: Tensor, candidates: Tensor, words: Tensor | None, generator: torch.Generator
) -> None:
    places = candidates.nonzero()
    row, column = places[torch.randint(len(places), (1,), generator=generator)[0]]
    if words is None:
        chosen[row, column] = True
    else:
        chosen[row] = candidates[row] & (words[row] == words[row, column])


def _words(ids: Tensor, tokenizer: Tokenizer) -> Tensor:
    """For each token the number of its word in the sequence; a special token begins one, too."""
    return (_starts(tokenizer)[ids].long().cumsum(1) - 1).clamp(min=0)


@lru_cache(maxsize=2)
def _kinds(tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    """Whether an id is no special token, and the tokens that are none; made once."""
    is_ordinary = torch.ones(tokenizer.vocab_size, dtype=torch.bool)
    is_ordinary[list(tokenizer.special)] = False
    return is_ordinary, is_ordinary[: tokenizer.num_tokens].nonzero().squeeze(1)


@lru_cache(maxsize=2)
def _starts(tokenizer: Tokenizer) -> Tensor:
    return torch.tensor(tokenizer.word_starts)
