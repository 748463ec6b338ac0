"""The texts that a tokenizer is made from: files and folders, read line by line and never kept.

A line is a document: plain text, or JSON as `sources.formats` takes it. CSV and Parquet have a row
for each, the dump of a MediaWiki a page. What cannot be read, or training refuses, is left out and
counted; so are lines that are too long for one piece.
"""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from trainer.sources.base import MAX_LINE_BYTES, Tally, Torn
from trainer.sources.cutting import cut
from trainer.sources.formats import Unreadable, check_file, document_of, read
from trainer.sources.kinds import is_parquet, refusal_of
from trainer.sources.packed import unpacked
from trainer.sources.private import files_of
from trainer.sources.wiki import WikiPages, begins_dump

LONGEST = 10_000  # characters of a piece
TABLES = (".csv", ".tsv", ".parquet")
JSON_LINES = (".jsonl", ".ndjson")
PEEKED_BYTES = 4096


@dataclass
class Seen:
    """`split`: documents that were longer than a piece. `left_out`: files, or their ends,
    and why."""

    documents: int = 0
    characters: int = 0
    broken: int = 0
    split: int = 0
    first_broken: str = ""
    left_out: dict[str, str] = field(default_factory=dict)


class Corpus:
    """Pieces of at most 10,000 characters; of all documents, or of a `share` that their content
    decides, so that it is the same whatever the order."""

    def __init__(self, paths: Iterable[Path], share: float = 1.0) -> None:
        """Raises OSError for a path that cannot be looked at."""
        self.files = [file for path in paths for file in files_of(path)]
        self.num_bytes = sum(file.stat().st_size for file in self.files)
        self.seen = Seen()
        self.share = share
        self._bytes_read = 0

    @property
    def share_read(self) -> float:
        """From 0 to 1; too high at first where files are packed."""
        return min(1.0, self._bytes_read / max(1, self.num_bytes))

    def __iter__(self) -> Iterator[str]:
        self.seen, before = Seen(), 0
        for file in self.files:
            self._bytes_read = before
            before += file.stat().st_size
            documents = self.seen.documents
            try:
                yield from self._pieces(file)
            except (Unreadable, OSError, Torn) as error:
                why = str(error) or type(error).__name__
                used = "; what came before is used" if self.seen.documents > documents else ""
                self.seen.left_out[str(file)] = why + used

    def _pieces(self, file: Path) -> Iterator[str]:
        kind = _kind_of(file)
        if kind in TABLES:
            for number, document in enumerate(read(file, kind), 2):  # after the header
                yield from self._document(document, file, number)
            return
        with unpacked(file.open("rb")) as stream:
            if begins_dump(stream.peek(PEEKED_BYTES)):  # type: ignore[attr-defined]
                yield from self._articles(stream, file)
            else:
                yield from self._lines(stream, kind in JSON_LINES, file)

    def _lines(self, lines: BinaryIO, is_json: bool, file: Path) -> Iterator[str]:
        for number, line in enumerate(iter(lambda: lines.readline(MAX_LINE_BYTES), b""), 1):
            self._bytes_read += len(line)
            line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if len(line) >= MAX_LINE_BYTES and not line.endswith(b"\n"):
                yield from self._long_line(line, lines, is_json, file, number)
            else:
                yield from self._document(_parsed(line, is_json), file, number)

    def _articles(self, stream: BinaryIO, file: Path) -> Iterator[str]:
        reader = WikiPages()
        for number, page in enumerate(reader.items(stream), 1):
            tally = Tally()
            text = reader.document(page, tally, str(file))
            self._bytes_read += len(page.content)
            if text or tally.broken:
                yield from self._document(text, file, number)

    def _document(self, document: str | None, file: Path, number: int) -> Iterator[str]:
        if document is None:
            self._note_broken(file, number)
        elif document and zlib.crc32(document.encode()) < self.share * 2**32:
            self.seen.documents += 1
            self.seen.characters += len(document)
            self.seen.split += len(document) > LONGEST
            yield from cut(document, LONGEST)

    def _long_line(
        self, begun: bytes, lines: BinaryIO, is_json: bool, file: Path, number: int
    ) -> Iterator[str]:
        """A line that may not fit into memory: used as it comes, whatever the share; but JSON."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        is_whole, left = not is_json, ""
        while begun:
            if is_whole:
                try:
                    left += decoder.decode(begun)
                except UnicodeDecodeError:
                    is_whole = False
                *pieces, left = cut(left, LONGEST)
                for piece in pieces:
                    self.seen.characters += len(piece)
                    yield piece
            if begun.endswith(b"\n"):
                break
            begun = lines.readline(MAX_LINE_BYTES)
            self._bytes_read += len(begun)
        if not is_whole:
            self._note_broken(file, number)
        else:
            self.seen.documents += 1
            self.seen.split += 1
            left = left.rstrip()
            self.seen.characters += len(left)
            if left:
                yield left

    def _note_broken(self, file: Path, number: int) -> None:
        self.seen.broken += 1
        self.seen.first_broken = self.seen.first_broken or f"line {number} of {file}"


def _kind_of(file: Path) -> str:
    """Its ending; Parquet is known without. Raises Unreadable for what training refuses, with its
    words, and OSError."""
    check_file(file)
    if refused := refusal_of(file):
        raise Unreadable(f"it is {refused}")
    return ".parquet" if is_parquet(file) else file.suffix.lower()


def _parsed(line: bytes, is_json: bool) -> str | None:
    """The document in a line; "" when it is empty, None when it cannot be read."""
    try:
        text = line.decode().strip()
        if not text.startswith("{"):
            return None if is_json and text else text
        return document_of(json.loads(text))
    except UnicodeDecodeError:
        return None
    except (ValueError, RecursionError):
        return None if is_json else text  # words in braces
