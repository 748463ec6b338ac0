"""What a volunteer's own files may look like, told by their endings: lines, records or tables.

A record (a line of JSONL, a row of CSV or Parquet) is a document in one of these ways:

    text                                   that text
    messages, conversations                a chat: a list of {role, content} or {from, value}
    instruction | prompt | question  with  output | response | completion | answer
                                           both, and `input` or `context` between them
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, AnyStr

from trainer.sources.base import MAX_LINE_BYTES

CHAT = ("messages", "conversations")
ASKED = ("instruction", "prompt", "question")
BETWEEN = ("input", "context")
ANSWERED = ("output", "response", "completion", "answer")
FIELDS = ("text", *CHAT, *ASKED, *BETWEEN, *ANSWERED)
NEEDED = "text, messages, or an instruction with its output"
ROWS_AT_ONCE = 64
Document = str | None  # "" when it is empty, None when it cannot be read


class Unreadable(Exception):
    """A file that is not what its ending says; why, in words that do not name it."""


class TooLong(Exception):
    """A line of more than MAX_LINE_BYTES."""


def document_of(record: Any) -> Document:
    """A record as a document."""
    try:
        text = _text_of(record).strip()
        text.encode()  # half a surrogate pair has no token
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    return text if len(text) <= MAX_LINE_BYTES else None


def _text_of(record: dict[str, Any]) -> str:
    """Raises KeyError, TypeError or AttributeError where a field is missing or of a wrong kind."""
    if isinstance(record.get("text"), str):
        return str(record["text"])
    for name in CHAT:
        if record.get(name) is not None:
            return "\n".join(map(_said, record[name]))
    between = [record[name] for name in BETWEEN if record.get(name)]
    parts = [_first(record, ASKED), *between, _first(record, ANSWERED)]
    return "\n".join(part.strip() for part in parts)


def _said(turn: dict[str, Any]) -> str:
    who, what = ("role", "content") if "content" in turn else ("from", "value")
    return f"{turn[who].strip()}: {turn[what].strip()}"


def _first(record: dict[str, Any], names: Iterable[str]) -> Any:
    for name in names:
        if record.get(name) is not None:
            return record[name]
    raise KeyError(names)


def check_columns(columns: Collection[str]) -> None:
    """Raises Unreadable when no row of these columns can be a document."""
    has = [any(name in columns for name in names) for names in (("text", *CHAT), ASKED, ANSWERED)]
    if not (has[0] or (has[1] and has[2])):
        raise Unreadable(f"it has the columns {', '.join(columns) or '(none)'}; needed: {NEEDED}")


class _Lines(Iterator[AnyStr]):
    """The lines of an open file. One that is too long raises TooLong, and is never held whole."""

    def __init__(self, file: IO[AnyStr], ends: tuple[AnyStr, ...]) -> None:
        self._file: IO[AnyStr] = file
        self._ends: tuple[AnyStr, ...] = ends

    def __next__(self) -> AnyStr:
        line = self._file.readline(MAX_LINE_BYTES + 1)
        if not line:
            raise StopIteration
        if len(line) <= MAX_LINE_BYTES:
            return line
        while line and not line.endswith(self._ends):
            line = self._file.readline(MAX_LINE_BYTES)
        raise TooLong


def _check_encoding(file: IO[bytes]) -> None:
    """Raises Unreadable for what Windows calls Unicode, whose first bytes tell."""
    start = file.read(4)
    file.seek(0)
    if start.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        raise Unreadable("its text is UTF-16 or UTF-32, not UTF-8: save it as UTF-8")


def _lines(path: Path) -> Iterator[Document]:
    """Plain text: one document a line."""
    with path.open("rb") as file:
        _check_encoding(file)
        lines = _Lines(file, (b"\n",))
        start = b"\xef\xbb\xbf"
        while True:
            try:
                yield next(lines).removeprefix(start).decode().strip()
            except StopIteration:
                return
            except (TooLong, UnicodeDecodeError):
                yield None
            start = b""


def _json_lines(path: Path) -> Iterator[Document]:
    for line in _lines(path):
        if not line:
            yield line
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            yield None
        else:
            yield document_of(record)


def _table(path: Path) -> Iterator[Document]:
    """CSV with a header; the first line tells which of , ; and tab separates."""
    csv.field_size_limit(MAX_LINE_BYTES)
    with path.open("rb") as raw:
        _check_encoding(raw)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        head = file.readline(MAX_LINE_BYTES)
        file.seek(0)
        lines = _Lines(file, ("\n", "\r"))
        rows = csv.DictReader(lines, delimiter=max(",;\t", key=head.count))
        try:
            check_columns(rows.fieldnames or ())
        except (csv.Error, TooLong) as error:
            raise Unreadable("its first line is no header of a table") from error
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except (csv.Error, TooLong):
                yield None
            else:
                yield document_of(row)


def _parquet(path: Path) -> Iterator[Document]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            columns = file.schema_arrow.names
            check_columns(columns)
            known = [name for name in FIELDS if name in columns]
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=known):
                yield from map(document_of, records_of(batch))
    except ArrowException as error:
        raise Unreadable("it is no Parquet file, or it is damaged") from error


def records_of(batch: Any) -> list[Any]:
    """Its rows; None for one that holds what Python has no value for."""
    try:
        return list(batch.to_pylist())
    except (ValueError, OverflowError):  # bytes that are no UTF-8, a date in the far future
        if batch.num_rows == 1:
            return [None]
        return [row for at in range(batch.num_rows) for row in records_of(batch.slice(at, 1))]


READERS: dict[str, Callable[[Path], Iterator[Document]]] = {
    ".txt": _lines,
    ".md": _lines,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": _table,
    ".tsv": _table,
    ".parquet": _parquet,
}


def read(path: Path, ending: str = "") -> Iterator[Document]:
    """The documents of one file, in order; `ending`: where its name does not tell what it is.

    Raises Unreadable, or OSError.
    """
    check_file(path)
    reader = READERS.get(ending or path.suffix.lower())
    if reader is None:
        raise Unreadable(f"its ending is none of {' '.join(READERS)}")
    return reader(path)


def check_file(path: Path) -> None:
    """Raises Unreadable for what is no file with a content."""
    if path.is_dir():
        raise Unreadable("this folder may not be read by you")
    if path.exists() and not path.is_file():  # a pipe would keep its reader waiting for good
        raise Unreadable("it is no ordinary file")
