"""Lines of text behind a URL, read as they come."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, groupby

from trainer.sources.base import Block, Piece, Source, Tally, pieces, shuffled
from trainer.sources.lines import Line, document_in, lines
from trainer.sources.places import Web

BLOCK_BYTES = 256 * 1024


class HttpSource(Source):
    """Starts at a seeded place when the server knows ranges, and shuffles what passes by."""

    def __init__(self, place: Web, tally: Tally | None = None) -> None:
        super().__init__(tally)
        self._place = place

    def documents(self, seed: str) -> Iterator[str]:
        rng = random.Random(seed)  # noqa: S311 - an order, not a secret
        size = self._place.size()
        if size is None:
            found = self._lines(0, None)
        else:
            start = rng.randrange(size)
            found = chain(self._lines(start, None), self._lines(0, start))
        yield from shuffled(self._texts(found), rng)

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        """The lines that begin in blocks `number`, `number + of`, … of the text.

        A block is one ranged request, and has a step for each of its bytes. A server without ranges
        has to send all of the text.
        """
        size = self._place.size()
        blocks = self._blocks(number, of, size) if size else self._sieved(number, of)
        total = len(range(number * BLOCK_BYTES, size, of * BLOCK_BYTES)) if size else 0
        return pieces(blocks, seed, start, total * BLOCK_BYTES)

    def _blocks(self, number: int, of: int, size: int) -> Iterator[Block]:
        for step, first in enumerate(range(number * BLOCK_BYTES, size, of * BLOCK_BYTES)):
            found = self._lines(first, first + BLOCK_BYTES)
            yield Block(step * BLOCK_BYTES, BLOCK_BYTES, self._texts(found))

    def _sieved(self, number: int, of: int) -> Iterator[Block]:
        for block, found in groupby(self._lines(0, None), lambda line: line.begins // BLOCK_BYTES):
            if block % of == number:
                yield Block(block // of * BLOCK_BYTES, BLOCK_BYTES, self._texts(found))

    def _lines(self, start: int, end: int | None) -> Iterator[Line]:
        """Those that begin in [start, end). Raises SourceUnavailable."""
        # From the byte before on: if that ends a line, the next one begins at `start`.
        with self._place.open(max(start - 1, 0)) as stream:
            begins = start
            if start > 0:
                begins -= 1
                for part in iter(lambda: stream.readline(BLOCK_BYTES), b""):
                    begins += len(part)
                    if part.endswith(b"\n"):
                        break
            yield from lines(stream, begins, end)

    def _texts(self, found: Iterator[Line]) -> Iterator[str]:
        for line in found:
            text = document_in(line.content, self.tally, line.at, self._place.where)
            if text is not None:
                yield text
