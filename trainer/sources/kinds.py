"""What kind of text lies at a place, told by its first bytes, whatever it is called.

Lines (plain or JSON), the same packed, Parquet, or a dump of a MediaWiki, packed or not.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from trainer.sources.base import Piece, Source, SourceUnavailable, Tally, Torn
from trainer.sources.file import FileSource
from trainer.sources.http import HttpSource
from trainer.sources.packed import is_packed, unpacked
from trainer.sources.places import Disk, Web
from trainer.sources.stream import PackedLines, StreamSource
from trainer.sources.table import TableSource
from trainer.sources.wiki import WikiPages, begins_dump

LOOKED_AT_BYTES = 4096
PARQUET = b"PAR1"
TAR = slice(257, 262), b"ustar"
OTHER = {
    codecs.BOM_UTF16_LE: "UTF-16: save it as UTF-8",
    codecs.BOM_UTF16_BE: "UTF-16: save it as UTF-8",
    b"PK\x03\x04": "a zip archive: unpack it, or pack its text with gzip, bzip2, xz or zstd",
    b"7z\xbc\xaf": "a 7z archive: unpack it, or pack its text with gzip, bzip2, xz or zstd",
}


class TextSource(Source):
    """Of whatever kind. It is looked at when it is first read, so that none is needed before."""

    def __init__(self, place: Disk | Web) -> None:
        super().__init__()
        self._place = place
        self._told: Source | None = None

    def documents(self, seed: str) -> Iterator[str]:
        yield from self._source().documents(seed)

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        yield from self._source().shard(number, of, seed, start)

    def _source(self) -> Source:
        if self._told is None:
            self._told = source_of(self._place, self.tally)
        return self._told


def source_of(place: Disk | Web, tally: Tally) -> Source:
    """Raises SourceUnavailable when it cannot be read, and for what is no text."""
    try:
        with place.open() as raw:
            first, inside = _beginnings(raw)
    except OSError as error:
        raise SourceUnavailable(f"{place.where}: {error.strerror or error}") from error
    if refused := _refusal(place.where, first, inside):
        raise SourceUnavailable(f"{place.where} is {refused}")
    if first.startswith(PARQUET):
        return TableSource(place, tally)
    if begins_dump(inside):
        return StreamSource(place, WikiPages(), tally)
    if is_packed(first):
        return StreamSource(place, PackedLines(), tally)
    return HttpSource(place, tally) if isinstance(place, Web) else FileSource(place.path, tally)


def refusal_of(path: Path) -> str | None:
    """What a file is, if it is nothing that can be read. Raises OSError."""
    with path.open("rb") as raw:
        return _refusal(str(path), *_beginnings(raw))


def is_parquet(path: Path) -> bool:
    """Raises OSError."""
    with path.open("rb") as raw:
        return raw.read(len(PARQUET)) == PARQUET


def check_text(path: Path) -> None:
    """Reads its beginning. Raises SourceUnavailable for what gives no document to train on."""
    place = Disk(path)
    source = source_of(place, Tally())
    if isinstance(source, FileSource):  # it looks for every line before it gives one
        source = StreamSource(place, PackedLines())
    if next(source.shard(0, 1, ""), None) is None:
        raise SourceUnavailable(f"{path} has no text")


def _beginnings(raw: BinaryIO) -> tuple[bytes, bytes]:
    """As it lies there, and unpacked. Damage shows when it is read."""
    first = raw.read(LOOKED_AT_BYTES)
    raw.seek(0)
    try:
        return first, unpacked(raw).read(LOOKED_AT_BYTES)
    except Torn:
        return first, b""


def _refusal(where: str, first: bytes, inside: bytes) -> str | None:
    if first.startswith(PARQUET):
        return None
    for magic, words in OTHER.items():
        if inside.startswith(magic):
            return words
    if inside.startswith(b"<") and b"<!doctype" in inside.lower():
        return "XML or HTML with a document type, which no dump of a MediaWiki has"
    if inside.startswith(b"<?xml") and not begins_dump(inside):
        return "XML, and no dump of a MediaWiki"
    if inside[TAR[0]] == TAR[1]:
        return "a tar archive: unpack it, and name the text in it"
    if is_packed(first) and (is_packed(inside) or inside.startswith(PARQUET)):
        return "packed twice: unpack it once"
    if where.lower().endswith(".parquet"):
        return "called .parquet, and does not begin like one (PAR1)"
    return None
