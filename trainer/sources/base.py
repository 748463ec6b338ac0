"""What every source of text shares: documents out, and what gave none counted."""

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


class Torn(Exception):
    """From here on the text is damaged: packed bytes that break off or make no sense; why."""


@dataclass
class Tally:
    """How many documents a source gave, and what gave none.

    `broken`: lines, rows and pages that cannot be read, and each time that packed text broke off.
    `long`: those that came in parts, by the part, or were too long to be used. `left_out`: pages
    that are no articles. `first_broken`: where that was, and why where that is known.
    """

    read: int = 0
    broken: int = 0
    empty: int = 0
    long: int = 0
    left_out: int = 0
    first_broken: str = ""

    def count(self, text: str | None, place: str) -> None:
        """Counts one document; "" is an empty one and None a broken one."""
        if text is None:
            self.broken += 1
            self.first_broken = self.first_broken or place
        elif text:
            self.read += 1
        else:
            self.empty += 1


class Piece(NamedTuple):
    """A document of a shard, and how far in it that is: `done` of `total` steps; 0: not known."""

    document: str
    done: int
    total: int


class Block(NamedTuple):
    """Documents that are read together: `steps` at most, from step `first` of a shard on."""

    first: int
    steps: int
    documents: Iterator[str]


class Source:
    """One place with texts of one kind."""

    def __init__(self, tally: Tally | None = None) -> None:
        self.tally = tally or Tally()

    def documents(self, seed: str) -> Iterator[str]:
        """One pass over the text, in an order that depends on `seed` alone.

        Raises SourceUnavailable when the text cannot be read.
        """
        raise NotImplementedError

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        """One pass over shard `number` of `of`, from step `start` on, in an order by `seed` alone.

        Each document of the text is in one shard and no other, whoever asks and whatever the order.
        Who goes on at the last `done` of another misses nothing and repeats nothing. Raises
        SourceUnavailable.
        """
        raise NotImplementedError


def pieces(blocks: Iterable[Block], seed: str, start: int, total: int) -> Iterator[Piece]:
    """The blocks of a shard one after another, each in an order by `seed`, from step `start` on.

    A block that `start` lies in is read again, and what was given of it left out.
    """
    for block in blocks:
        if block.first + block.steps <= start:
            continue
        rng = random.Random(f"{seed}/{block.first}")  # noqa: S311 - an order, not a secret
        order = shuffled(block.documents, rng)
        text, done = next(order, None), block.first
        while text is not None:
            following, done = next(order, None), done + 1
            if done > start:
                yield Piece(text, done if following else block.first + block.steps, total)
            text = following


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
    try:
        text = line.decode().strip()
        if text.startswith("{"):
            text = json.loads(text)["text"].strip()
            text.encode()  # half a surrogate pair has no token
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return text
