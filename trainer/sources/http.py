"""Text behind a URL, read as it comes: nothing is stored, a lost connection is taken up again."""

from __future__ import annotations

import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from itertools import groupby

from trainer.sources.base import MAX_LINE_BYTES, Piece, Source, SourceUnavailable, shuffled

TIMEOUT_S = 20.0
TRIES = 4
BLOCK_BYTES = 256 * 1024
Line = tuple[int, bytes]  # the byte it begins at, and what is in it


class HttpSource(Source):
    """Starts at a seeded place when the server knows ranges, and shuffles what passes by."""

    def __init__(self, url: str, pause_s: float = 1.0) -> None:
        super().__init__()
        self.url = url
        self._pause_s = pause_s

    def documents(self, seed: str) -> Iterator[str]:
        rng = random.Random(seed)  # noqa: S311 - an order, not a secret
        size = self._size_if_ranged()
        if size is None:
            lines = self._lines(0, None)
        else:
            start = rng.randrange(size)
            lines = _chain(self._lines(start, None), self._lines(0, start))
        found = (self.document(line) for _, line in lines)
        yield from shuffled((text for text in found if text is not None), rng)

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        """The lines that begin in blocks `number`, `number + of`, … of the text; a step is a block.

        A block is one ranged request. A server without ranges has to send all of the text.
        """
        size = self._size_if_ranged()
        total = len(range(number * BLOCK_BYTES, size, of * BLOCK_BYTES)) if size else 0
        blocks = self._blocks(number, of, start, size) if size else self._sieved(number, of, start)
        for done, lines in blocks:
            found = [text for _, line in lines if (text := self.document(line)) is not None]
            random.Random(f"{seed}/{done}").shuffle(found)  # noqa: S311 - an order, not a secret
            for text in found:
                yield Piece(text, done, total)

    def _blocks(
        self, number: int, of: int, start: int, size: int
    ) -> Iterator[tuple[int, Iterator[Line]]]:
        for step, first in enumerate(range(number * BLOCK_BYTES, size, of * BLOCK_BYTES)):
            if step >= start:
                yield step, self._lines(first, first + BLOCK_BYTES)

    def _sieved(self, number: int, of: int, start: int) -> Iterator[tuple[int, Iterator[Line]]]:
        by_block = groupby(self._lines(0, None), key=lambda line: line[0] // BLOCK_BYTES)
        for block, lines in by_block:
            if block % of == number and block // of >= start:
                yield block // of, lines

    def _open(self, position: int, method: str = "GET"):  # type: ignore[no-untyped-def]
        headers = {"Range": f"bytes={position}-"} if position else {}
        request = urllib.request.Request(self.url, headers=headers, method=method)  # noqa: S310
        return urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310 - recipe: http(s)

    def _size_if_ranged(self) -> int | None:
        """Size in bytes where the server serves ranges; None where it does not."""
        try:
            with self._open(0, method="HEAD") as reply:
                size = int(reply.headers.get("Content-Length") or 0)
                ranged = reply.headers.get("Accept-Ranges") == "bytes"
        except (OSError, HTTPException, ValueError):
            return None
        return size if ranged and size > 0 else None

    def _lines(self, start: int, end: int | None) -> Iterator[Line]:
        """Lines that begin in [start, end). Raises SourceUnavailable after `TRIES` failures."""
        # From the byte before on: if that ends a line, the next one begins at `start`.
        position, failures, skip_partial = max(start - 1, 0), 0, start > 0
        while True:
            try:
                with self._open(position) as reply:
                    if position and reply.status != 206:
                        _skip(reply, position)
                    while end is None or position < end:
                        line = reply.readline(MAX_LINE_BYTES + 1)
                        whole = line.endswith(b"\n")
                        if not whole and len(line) <= MAX_LINE_BYTES and reply.length:
                            raise ConnectionError("the connection broke off")
                        if not line:
                            return
                        begins, position, failures = position, position + len(line), 0
                        if not skip_partial:
                            yield begins, line
                        skip_partial = not whole
                    return
            except urllib.error.HTTPError as error:
                if error.code == 416:  # the position is the end
                    return
                failures = self._failed(failures, error)
            except (OSError, HTTPException) as error:
                failures = self._failed(failures, error)

    def _failed(self, failures: int, error: Exception) -> int:
        if failures + 1 >= TRIES:
            raise SourceUnavailable(f"{self.url}: {error}") from error
        time.sleep(self._pause_s * 2**failures)
        return failures + 1


def _chain(*parts: Iterator[Line]) -> Iterator[Line]:
    for part in parts:
        yield from part


def _skip(reply, count: int) -> None:  # type: ignore[no-untyped-def]
    while count > 0:
        piece = reply.read(min(count, 1 << 16))
        if not piece:
            return
        count -= len(piece)
