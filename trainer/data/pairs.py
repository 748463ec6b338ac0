"""Sequences of two segments that follow each other in a document, half of them in the wrong order.

Lan et al. 2020 (ALBERT), section 3.1: the model is to tell which half, for which it has to follow
the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

import torch

from trainer.data.encoding import encoded
from trainer.data.marks import Document, Track
from trainer.text.tokenizer import Tokenizer, TokenizerError

# Behind one of these, or what closes after it, a blank ends the sentence; the danda is Hindi's and
# Bengali's. Chinese and Japanese have no blanks.
END, CLOSED = r"[.!?\u0964\u0965\u061f]", r"[\"')\]\u201d\u2019\u00bb]"
ENDS = re.compile(rf"(?:(?<={END})|(?<={END}{CLOSED}))\s+|(?<=[\u3002\uff01\uff1f])")


class Pair(NamedTuple):
    """`ids` with the frame around both segments; `first` of them belong to the first one."""

    ids: list[int]
    first: int
    is_swapped: bool


def pair_up(
    documents: Iterable[str], tokenizer: Tokenizer, room: int, generator: torch.Generator
) -> Iterator[Pair]:
    """At most `room` ids of one document each, and three special tokens around its segments.

    A document of one sentence is cut anywhere; one of a single token is left out.

    Raises TokenizerError where there is no start token.
    """
    return pair_up_tracked(map(Document, documents), tokenizer, room, generator, Track())


def pair_up_tracked(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    room: int,
    generator: torch.Generator,
    track: Track,
) -> Iterator[Pair]:
    """The same; `track` tells of the newest pair how far in the documents it goes."""
    if tokenizer.start is None:
        raise TokenizerError("sentence order needs a tokenizer with a start token, as [CLS]")
    for document in encoded(documents, tokenizer, ENDS.split):
        track.enter(document.origin)
        for sentences in _windows(filter(None, document.parts), room):
            track.used += sum(map(len, sentences))
            if track.used <= document.skip:
                continue
            if (pair := _cut(sentences, tokenizer, generator)) is not None:
                yield pair


def _windows(sentences: Iterable[list[int]], size: int) -> Iterator[list[list[int]]]:
    """As many whole sentences as have room; a longer one in pieces of that size."""
    held: list[list[int]] = []
    room = size
    for sentence in sentences:
        for piece in (sentence[at : at + size] for at in range(0, len(sentence), size)):
            if len(piece) > room:
                yield held
                held, room = [], size
            held.append(piece)
            room -= len(piece)
    if held:
        yield held


def _cut(
    sentences: list[list[int]], tokenizer: Tokenizer, generator: torch.Generator
) -> Pair | None:
    """Between two sentences, or within the only one; None for a single token."""
    ids = [token for sentence in sentences for token in sentence]
    places = list(accumulate(map(len, sentences)))[:-1] or list(range(1, len(ids)))
    if not places:
        return None
    place = places[int(torch.randint(len(places), (1,), generator=generator))]
    is_swapped = bool(torch.rand(1, generator=generator) < 0.5)
    segments = (ids[place:], ids[:place]) if is_swapped else (ids[:place], ids[place:])
    start, end = tokenizer.start, tokenizer.end
    assert start is not None
    framed = [start, *segments[0], end, *segments[1], end]
    return Pair(framed, len(segments[0]) + 2, is_swapped)
