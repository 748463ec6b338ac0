"""A volunteer's own texts: a file, or all files of a folder, read where they lie.

What a document's bytes hash to decides which part it is in, on every pass and after every restart,
whatever its file is called: two parts of twenty are held out, the others are trained on. Nothing is
copied, and no error that may leave the device names a file or quotes a text.
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
from collections.abc import Iterator
from heapq import nsmallest
from pathlib import Path

from trainer.sources.base import Source, SourceUnavailable, shuffled
from trainer.sources.formats import Unreadable, read

PARTS = 20
HELD_OUT = (0, 1)
CHECKED, CHECKED_CHARACTERS = 1024, 16_384  # held-out documents, and what of each is looked at
FEWEST = 20  # different documents, below which none is held out
UNREADABLE = "this device's own texts cannot be read now; its log says why"
log = logging.getLogger(__name__)


def files_of(path: Path) -> list[Path]:
    """The file itself, or the files of a folder and of those in it, without hidden ones; and each
    folder that cannot be read, so that it is told, too.
    """
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    closed: list[Path] = []
    for folder, inner, names in os.walk(path, onerror=lambda e: closed.append(Path(e.filename))):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        found += [Path(folder, name) for name in sorted(names) if not name.startswith(".")]
    return [*found, *closed]


def _hash(document: str) -> bytes:
    return hashlib.sha256(document.encode()).digest()


def part_of(document: str) -> int:
    return int.from_bytes(_hash(document)[:4], "big") % PARTS


class PrivateSource(Source):
    """A pass is one sweep over all files for each part, so that it begins anywhere in a long file.

    `left_out`: why, for each file that gave nothing in the newest sweep; `tally.broken` is of that
    sweep, too.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.left_out: dict[Path, str] = {}
        self._splits: bool | None = None

    def documents(self, seed: str) -> Iterator[str]:
        """What is not held out. Raises SourceUnavailable when nothing can be read."""
        parts = [part for part in range(PARTS) if not (self.splits and part in HELD_OUT)]
        rng = random.Random(seed)  # noqa: S311 - an order, not a secret
        rng.shuffle(parts)
        before = self.tally.read
        for part in parts:
            for document in shuffled(self._part(part), rng):
                self.tally.read += 1
                yield document
        if self.tally.read == before:
            raise SourceUnavailable(UNREADABLE)

    def held_out(self) -> list[str]:
        """Never trained on: the beginnings of those with the lowest hashes, in that order."""
        if not self.splits:
            return []
        found = (one for one in self.all() if part_of(one) in HELD_OUT)
        chosen = nsmallest(CHECKED, ((_hash(one), one[:CHECKED_CHARACTERS]) for one in found))
        return [text for _, text in chosen]

    @property
    def splits(self) -> bool:
        """Whether there are documents enough to hold some out."""
        if self._splits is None:
            seen: set[str] = set()
            for document in self.all():
                seen.add(document)
                if len(seen) >= FEWEST:
                    break
            self._splits = len(seen) >= FEWEST
        return self._splits

    def all(self) -> Iterator[str]:
        """Every document. A file that cannot be read is left out, and the log says so."""
        known, self.left_out, self.tally.broken = self.left_out, {}, 0
        for file in files_of(self.path):
            try:
                for document in read(file):
                    self.tally.broken += document is None
                    if document:
                        yield document
            except (OSError, Unreadable) as error:
                reason = str(getattr(error, "strerror", None) or error)
                self.left_out[file] = reason
                if known.get(file) != reason:
                    log.warning("%s is left out: %s", file, reason)

    def _part(self, part: int) -> Iterator[str]:
        return (document for document in self.all() if part_of(document) == part)
