"""Token ids of documents, many at once, so that a tokenizer with threads can share them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from trainer.data.marks import Document, Origin
from trainer.text.tokenizer import Tokenizer

AT_ONCE, CHARACTERS_AT_ONCE = 256, 32_768


class Encoded(NamedTuple):
    """The ids of a document, part by part."""

    parts: list[list[int]]
    origin: Origin | None

    @property
    def skip(self) -> int:
        return self.origin.skip if self.origin is not None else 0


def encoded(
    documents: Iterable[Document], tokenizer: Tokenizer, cut: Callable[[str], list[str]]
) -> Iterator[Encoded]:
    """`cut` makes the parts of a document."""
    for some in _some(documents):
        parts = [cut(document.text) for document in some]
        ids = iter(tokenizer.encode_all([text for one in parts for text in one]))
        for document, texts in zip(some, parts, strict=True):
            yield Encoded(list(islice(ids, len(texts))), document.origin)


def _some(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """As many as come together; those before an error come before it."""
    held: list[Document] = []
    num_characters = 0
    try:
        for document in documents:
            held.append(document)
            num_characters += len(document.text)
            if len(held) >= AT_ONCE or num_characters >= CHARACTERS_AT_ONCE:
                yield held
                held, num_characters = [], 0
    except Exception:
        yield held
        raise
    yield held
