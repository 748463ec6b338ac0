"""Documents joined end to end and cut into sequences of one length, so that nothing is padded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trainer.data.encoding import encoded
from trainer.data.marks import Document, Track
from trainer.data.spans import window
from trainer.families.base import Objective
from trainer.text.tokenizer import Tokenizer


def room(objective: Objective, length: int) -> int:
    """Tokens of the texts that one sequence of `length` ids holds."""
    if objective.kind == "masked":
        return length - (3 if objective.pairs else 2)  # special tokens around the segments
    return window(length) if objective.kind == "spans" else length


def pack(
    documents: Iterable[str], tokenizer: Tokenizer, length: int, framed: bool
) -> Iterator[list[int]]:
    """Sequences of `length` ids; documents are separated by the end token.

    `framed` puts the start token, if there is one, and the end token around each sequence. What is
    left over at the end of a finite stream is a shorter last sequence.
    """
    return pack_tracked(map(Document, documents), tokenizer, length, framed, Track())


def pack_tracked(
    documents: Iterable[Document], tokenizer: Tokenizer, length: int, framed: bool, track: Track
) -> Iterator[list[int]]:
    """The same; `track` tells of the newest sequence how far in the documents it goes."""
    before = [] if tokenizer.start is None else [tokenizer.start]
    inner = length - len(before) - 1 if framed else length
    left: list[int] = []
    for document in encoded(documents, tokenizer, lambda text: [text]):
        track.enter(document.origin)
        (ids,) = document.parts
        ids.append(tokenizer.end)
        left += ids[document.skip :]
        cut = len(left) - len(left) % inner
        for start in range(0, cut, inner):
            piece = left[start : start + inner]
            track.used = len(ids) - (len(left) - start - inner)
            yield [*before, *piece, tokenizer.end] if framed else piece
        del left[:cut]
    if left:
        track.used = len(ids)
        yield [*before, *left, tokenizer.end] if framed else left
