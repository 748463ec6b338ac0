"""A local file: one that the agent fetched from the site by its hash, or one of its own."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from pathlib import Path

from trainer.sources.base import MAX_LINE_BYTES, Piece, Source, SourceUnavailable, Tally
from trainer.sources.lines import document_in, first_part, lines


class FileSource(Source):
    """Reads lines in a shuffled order: memory is 8 bytes a line, whatever the file's size."""

    def __init__(self, path: Path, tally: Tally | None = None) -> None:
        super().__init__(tally)
        self.path = path
        self._starts: array[int] | None = None

    def documents(self, seed: str) -> Iterator[str]:
        for piece in self.shard(0, 1, seed):
            yield piece.document

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        """Lines `number`, `number + of`, …; a step is a line, or a part of a long one."""
        try:
            with self.path.open("rb") as file:
                if self._starts is None:
                    self._starts = array("Q", (line.at for line in lines(file)))
                order = list(range(number, len(self._starts), of))
                random.Random(seed).shuffle(order)  # noqa: S311 - an order, not a secret
                for done, line in enumerate(order[start:], start + 1):
                    at = self._starts[line]
                    file.seek(at)
                    part = first_part(file.readline(MAX_LINE_BYTES))
                    text = document_in(part, self.tally, at, str(self.path))
                    if text is not None:
                        yield Piece(text, done, len(order))
        except OSError as error:
            raise SourceUnavailable(f"{self.path}: {error.strerror or error}") from error
