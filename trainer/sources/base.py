"""What every source of text shares: lines in, documents out, broken lines counted."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

MAX_LINE_BYTES = 4 * 2**20
SHUFFLED_DOCUMENTS, SHUFFLED_CHARACTERS = 1024, 8_000_000


class SourceUnavailable(Exception):
    """The text cannot be read now; says where it is and why."""


@dataclass
class Tally:
    """How many lines of a source gave a document, and how many could not be read."""

    read: int = 0
    broken: int = 0


class Piece(NamedTuple):
    """A document of a shard, and how far in it that is: `done` of `total` steps; 0: not known."""

    document: str
    done: int
    total: int


class Source:
    """One place with one document a line: JSONL with a `text` key, or plain text."""

    def __init__(self) -> None:
        self.tally = Tally()

    def documents(self, seed: str) -> Iterator[str]:
        """One pass over the text, in an order that depends on `seed` alone.

        Raises SourceUnavailable when the text cannot be read.
        """
        raise NotImplementedError

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        """One pass over shard `number` of `of`, from step `start` on, in an order by `seed` alone.

        Each line of the text is in one shard and no other, whoever asks and whatever the order.
        Who goes on at the last `done` of another misses nothing. Raises SourceUnavailable.
        """
        raise NotImplementedError

    def document(self, line: bytes) -> str | None:
        """The document in a line; None for an empty or broken one, which is counted."""
        text = parse(line)
        if text is None:
            self.tally.broken += 1
        elif text:
            self.tally.read += 1
        return text or None


def shuffled(documents: Iterable[str], rng: random.Random) -> Iterator[str]:
    """All of them, each in exchange for a random one of those before it, as many as are held."""
    waiting: list[str] = []
    num_characters = 0
    for document in documents:
        waiting.append(document)
        num_characters += len(document)
        while len(waiting) >= SHUFFLED_DOCUMENTS or num_characters > SHUFFLED_CHARACTERS:
            taken = _take(waiting, rng)
            num_characters -= len(taken)
            yield taken
    while waiting:
        yield _take(waiting, rng)


def _take(waiting: list[str], rng: random.Random) -> str:
    number = rng.randrange(len(waiting))
    waiting[number], waiting[-1] = waiting[-1], waiting[number]
    return waiting.pop()


def parse(line: bytes) -> str | None:
    """The document in a line, "" when it is empty, None when it is broken."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        text = line.decode().strip()
        if text.startswith("{"):
            text = json.loads(text)["text"].strip()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return text
