"""A local file: one that the agent fetched from the site by its hash, or one of its own."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from pathlib import Path

from trainer.sources.base import Piece, Source, SourceUnavailable


class FileSource(Source):
    """Reads lines in a shuffled order: memory is 8 bytes a line, whatever the file's size."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._starts: array[int] | None = None

    def documents(self, seed: str) -> Iterator[str]:
        for piece in self.shard(0, 1, seed):
            yield piece.document

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        """Lines `number`, `number + of`, …; a step is a line."""
        try:
            with self.path.open("rb") as file:
                if self._starts is None:
                    self._starts = _line_starts(file)
                order = list(range(number, len(self._starts), of))
                random.Random(seed).shuffle(order)  # noqa: S311 - an order, not a secret
                for done, line in enumerate(order[start:], start + 1):
                    file.seek(self._starts[line])
                    text = self.document(file.readline())
                    if text is not None:
                        yield Piece(text, done, len(order))
        except OSError as error:
            raise SourceUnavailable(f"{self.path}: {error.strerror or error}") from error


def _line_starts(file: Iterator[bytes]) -> array[int]:
    starts, position = array("Q"), 0
    for line in file:
        starts.append(position)
        position += len(line)
    return starts
