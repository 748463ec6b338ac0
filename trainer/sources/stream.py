"""Texts that can only be read from their beginning: packed lines, and dumps of a wiki."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, BinaryIO, Protocol

from trainer.sources.base import (
    Block,
    Piece,
    Source,
    SourceUnavailable,
    Tally,
    Torn,
    pieces,
    shuffled,
)
from trainer.sources.lines import Line, document_in, lines
from trainer.sources.packed import unpacked
from trainer.sources.places import Place

BLOCK_ITEMS = 256


class Reader(Protocol):
    """What a stream is made of: `items`, of which each has one document or none."""

    def items(self, stream: BinaryIO) -> Iterator[Any]: ...

    def document(self, item: Any, tally: Tally, where: str) -> str | None:
        """None for one that gives none, which is counted."""


class PackedLines:
    def items(self, stream: BinaryIO) -> Iterator[Line]:
        return lines(stream)

    def document(self, item: Line, tally: Tally, where: str) -> str | None:
        return document_in(item.content, tally, item.at, f"what is in {where}")


class StreamSource(Source):
    """Reads all of it for any part of it: what is not of the part is passed over unread.

    Where it is damaged it ends, which is counted: what came before is used.
    """

    def __init__(self, place: Place, reader: Reader, tally: Tally | None = None) -> None:
        super().__init__(tally)
        self._place, self._reader = place, reader

    def documents(self, seed: str) -> Iterator[str]:
        rng = random.Random(seed)  # noqa: S311 - an order, not a secret
        yield from shuffled(self._texts(self._items()), rng)

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        """Blocks `number`, `number + of`, … of 256 items; a step is an item."""
        return pieces(self._blocks(number, of), seed, start, total=0)

    def _blocks(self, number: int, of: int) -> Iterator[Block]:
        numbered = enumerate(self._items())
        for block, found in groupby(numbered, lambda item: item[0] // BLOCK_ITEMS):
            if block % of == number:
                texts = self._texts(item for _, item in found)
                yield Block(block // of * BLOCK_ITEMS, BLOCK_ITEMS, texts)

    def _items(self) -> Iterator[Any]:
        where = self._place.where
        try:
            with self._place.open() as raw:
                yield from self._reader.items(unpacked(raw))
        except Torn as error:
            self.tally.count(None, f"{where}: {error}")
        except OSError as error:
            raise SourceUnavailable(f"{where}: {error.strerror or error}") from error

    def _texts(self, items: Iterable[Any]) -> Iterator[str]:
        for item in items:
            text = self._reader.document(item, self.tally, self._place.where)
            if text:
                yield text
