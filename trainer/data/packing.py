"""Documents joined end to end and cut into sequences of one length, so that nothing is padded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trainer.text.tokenizer import Tokenizer


def pack(
    documents: Iterable[str], tokenizer: Tokenizer, length: int, framed: bool
) -> Iterator[list[int]]:
    """Sequences of `length` ids; documents are separated by the end token.

    `framed` puts the start and the end token around each sequence. What is left over at the end
    of a finite stream is a shorter last sequence.
    """
    inner = length - 2 if framed else length
    left: list[int] = []
    for document in documents:
        left += tokenizer.encode(document)
        left.append(tokenizer.end)
        while len(left) >= inner:
            piece, left = left[:inner], left[inner:]
            yield _frame(piece, tokenizer) if framed else piece
    if left:
        yield _frame(left, tokenizer) if framed else left


def _frame(piece: list[int], tokenizer: Tokenizer) -> list[int]:
    return [tokenizer.start, *piece, tokenizer.end]
