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
from typing import Any

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


def _check_columns(columns: Collection[str]) -> None:
    """Raises Unreadable when no row of these columns can be a document."""
    has = [any(name in columns for name in names) for names in (("text", *CHAT), ASKED, ANSWERED)]
    if not (has[0] or (has[1] and has[2])):
        raise Unreadable(f"it has the columns {', '.join(columns) or '(none)'}; needed: {NEEDED}")


def _lines(path: Path) -> Iterator[Document]:
    """Plain text: one document a line."""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            yield _decoded(line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line)


def _decoded(line: bytes) -> Document:
    try:
        return line.decode().strip() if len(line) <= MAX_LINE_BYTES else None
    except UnicodeDecodeError:
        return None


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
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        head = file.readline()
        file.seek(0)
        rows = csv.DictReader(file, delimiter=max(",;\t", key=head.count))
        try:
            _check_columns(rows.fieldnames or ())
        except csv.Error as error:
            raise Unreadable("its first line is no header of a table") from error
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error:
                yield None
            else:
                yield document_of(row)


def _parquet(path: Path) -> Iterator[Document]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            columns = file.schema_arrow.names
            _check_columns(columns)
            known = [name for name in FIELDS if name in columns]
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=known):
                yield from map(document_of, batch.to_pylist())
    except ArrowException as error:
        raise Unreadable("it is no Parquet file, or it is damaged") from error


READERS: dict[str, Callable[[Path], Iterator[Document]]] = {
    ".txt": _lines,
    ".md": _lines,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": _table,
    ".tsv": _table,
    ".parquet": _parquet,
}


def read(path: Path) -> Iterator[Document]:
    """The documents of one file, in order. Raises Unreadable, or OSError."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise Unreadable(f"its ending is none of {' '.join(READERS)}")
    return reader(path)
