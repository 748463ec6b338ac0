"""Lines of a stream, whatever their length: one that is too long comes in parts."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from trainer.sources.base import MAX_LINE_BYTES, Tally, parse
from trainer.sources.cutting import LOOKED_BACK, is_border


class Line(NamedTuple):
    """`begins`: the byte its line begins at; `at`: where this part of it does."""

    begins: int
    at: int
    content: bytes


def lines(stream: BinaryIO, begins: int = 0, end: int | None = None) -> Iterator[Line]:
    """Those that begin in [begins, end) of a stream that is at byte `begins`, at a line.

    Memory is MAX_LINE_BYTES, however long a line is. Of a JSON line that is longer only the first
    part comes, since no part of it can be read.
    """
    is_json = False
    while end is None or begins < end:
        at, left = begins, b""
        while chunk := left + stream.readline(MAX_LINE_BYTES - len(left)):
            part = first_part(chunk)
            if at == begins or not is_json:
                yield Line(begins, at, part)
            is_json = is_json if at > begins else chunk[:1] == b"{"
            at, left = at + len(part), chunk[len(part) :]
            if not left and part.endswith(b"\n"):
                break
        if not chunk:
            return
        begins = at


def first_part(chunk: bytes) -> bytes:
    """All of a line that is whole; of one that goes on, what ends between two characters."""
    if len(chunk) < MAX_LINE_BYTES or chunk.endswith(b"\n"):
        return chunk
    space = chunk.rfind(b" ", len(chunk) // 2)
    if space >= 0:
        return chunk[: space + 1]
    torn = next((n for n in range(1, 5) if chunk[-n] & 0xC0 != 0x80), 1)
    whole = chunk[:-torn]  # without the last character, which may go on
    last = whole[-4 * LOOKED_BACK :].decode(errors="ignore")
    for place in range(len(last) - 1, 0, -1):
        if is_border(last, place):
            return whole[: -len(last[place:].encode())]
    return whole


def document_in(line: bytes, tally: Tally, at: int, where: str) -> str | None:
    """The document in a line; None for an empty or broken one, which is counted."""
    text = parse(line.removeprefix(codecs.BOM_UTF8) if at == 0 else line)
    tally.long += len(line) > MAX_LINE_BYTES // 2 and not line.endswith(b"\n")
    tally.count(text, f"byte {at} of {where}")
    return text or None
