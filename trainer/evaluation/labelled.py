"""Labelled data in plain files: tagged sentences, and texts of classes. What is wrong is told with
its line."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

TEST_SHARE = 0.2  # of data that comes in one file
IOB = re.compile(r"(O|[BIES]-.+)")


class DataError(ValueError):
    """Labelled data that cannot be used; says where and why."""


class Sentence(NamedTuple):
    """A tag for each word."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


class Example(NamedTuple):
    text: str
    label: str


Row = TypeVar("Row", Sentence, Example)


class Split(NamedTuple):
    """Sentences, or examples, to learn from and to be tested with; rows that are neither."""

    train: list[Any]
    test: list[Any]
    left_out: int = 0


def read(paths: Sequence[Path], rows_of: Callable[[Path], list[Any]]) -> Split:
    """From two files, a folder with `train.*` and `test.*`, or one file: then a fifth of it, the
    same in every run, is for the test. Raises DataError and OSError."""
    files = [_named(paths[0], part) for part in ("train", "test")] if paths[0].is_dir() else paths
    if len(files) > 2:
        raise DataError(f"{len(files)} files: name one, or one to learn from and one for the test")
    parts = [rows_of(file) for file in files]
    if len(parts) == 2:
        return Split(parts[0], parts[1])
    return cut_in_two(parts[0], str(files[0]))


def cut_in_two(rows: list[Any], where: str) -> Split:
    """A fifth, the same in every run, is for the test. Raises DataError."""
    random.Random(0).shuffle(rows)  # noqa: S311 - an order, not a secret
    cut = max(1, round(TEST_SHARE * len(rows)))
    if cut == len(rows):
        raise DataError(f"{where} has one row: there is nothing to learn from and to test with")
    return Split(rows[cut:], rows[:cut])


def _named(folder: Path, part: str) -> Path:
    found = sorted(folder.glob(f"{part}.*"))
    if len(found) != 1:
        raise DataError(f"{folder} has {len(found)} files {part}.*: it needs one of them")
    return found[0]


def sentences(path: Path) -> list[Sentence]:
    """CoNLL: a word a line, its tag in the last column, an empty line after each sentence.

    Columns are divided by tabs, or else by spaces. Raises DataError and OSError.
    """
    found: list[Sentence] = []
    rows: list[tuple[str, str]] = []
    divider = None
    for number, line in [*_lines(path), (0, "")]:
        if not line.strip() or line.startswith("-DOCSTART-"):
            if rows:
                words, tags = zip(*rows, strict=True)
                found.append(Sentence(words, tags))
            rows = []
            continue
        if not found and not rows:
            divider = "\t" if "\t" in line else None
            _refuse_json(path, number, line)
        columns = line.split(divider)
        if len(columns) < 2 or not columns[0] or not columns[-1].strip():
            raise DataError(
                f"{path}, line {number}, is no word with its tag: {line.strip()[:50]!r}. A word "
                "comes first and its tag last, with a tab or, in all lines, a space between"
            )
        rows.append((columns[0], columns[-1].strip()))  # a word may be a blank: U+3000 is one
    return _some(path, found)


def _refuse_json(path: Path, number: int, line: str) -> None:
    """Its words would be taken for a word and its tag. Raises DataError."""
    try:
        is_json = isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        is_json = False
    if is_json:
        raise DataError(
            f"{path}, line {number}, is JSON. Tags are of CoNLL files: a word a line with its tag "
            "last, and an empty line after each sentence"
        )


def examples(path: Path) -> list[Example]:
    """CSV with the columns `text` and `label`, or JSONL with these keys. Raises as `sentences`."""
    rows = _of_csv(path) if path.suffix.lower() == ".csv" else _of_jsonl(path)
    found = []
    for number, text, label in rows:
        if not text.strip() or not label.strip():
            raise DataError(f"{path}, line {number}: the text or its label is empty")
        found.append(Example(text.strip(), label.strip()))
    return _some(path, found)


def _of_csv(path: Path) -> Iterator[tuple[int, str, str]]:
    rows = csv.reader((f"{line}\n" for _, line in _lines(path)), strict=True)
    try:
        header = next(rows, [])
        if not {"text", "label"} <= set(header):
            raise DataError(f"{path}, line 1: the columns text and label are not in its header")
        text, label = header.index("text"), header.index("label")
        for row in rows:
            if row and len(row) != len(header):
                raise DataError(
                    f"{path}, line {rows.line_num}, has {len(row)} columns, and its header "
                    f"{len(header)}: a text with commas stands between quotes"
                )
            if row:
                yield rows.line_num, row[text], row[label]
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: {error}") from error


def _of_jsonl(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            text, label = row["text"], row["label"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f'{path}, line {number}, is no {{"text": "…", "label": "…"}}: {error}'
            ) from error
        if not isinstance(text, str) or not isinstance(label, str | int):
            raise DataError(f"{path}, line {number}: text is a text, and label a text or number")
        yield number, text, str(label)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """With their numbers, from 1 on, and without their ends. Only newlines end them."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(f"{path}, line {number}, is not UTF-8: {error.reason}") from error
            yield number, text.rstrip("\r\n")


def _some(path: Path, rows: list[Row]) -> list[Row]:
    if not rows:
        raise DataError(f"{path} is empty")
    return rows


def labels_of(train: Sequence[str], test: Sequence[str]) -> list[str]:
    """All of them, in order. Raises DataError where there is nothing to tell apart."""
    known = set(train)
    if len(known) < 2:
        raise DataError(f"all that is learnt from is {next(iter(known))}: nothing to tell apart")
    return sorted(known | set(test))


def are_spans(tags: Sequence[str]) -> bool:
    """Whether they mark spans, as IOB and its kin do."""
    return all(IOB.fullmatch(tag) for tag in tags) and any(tag != "O" for tag in tags)
