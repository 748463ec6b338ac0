"""A local file: one that the agent fetched from the site by its hash, or one of its own."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from pathlib import Path

from trainer.sources.base import Source, SourceUnavailable


class FileSource(Source):
    """Reads lines in a shuffled order: memory is 8 bytes a line, whatever the file's size."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._starts: array[int] | None = None

    def documents(self, seed: str) -> Iterator[str]:
        try:
            with self.path.open("rb") as file:
                if self._starts is None:
                    self._starts = _line_starts(file)
                order = list(range(len(self._starts)))
                random.Random(seed).shuffle(order)  # noqa: S311 - an order, not a secret
                for number in order:
                    file.seek(self._starts[number])
                    text = self.document(file.readline())
                    if text is not None:
                        yield text
        except OSError as error:
            raise SourceUnavailable(f"{self.path}: {error.strerror or error}") from error


def _line_starts(file: Iterator[bytes]) -> array[int]:
    starts, position = array("Q"), 0
    for line in file:
        starts.append(position)
        position += len(line)
    return starts
