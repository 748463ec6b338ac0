"""Sentences and definitions of the Bengali dictionary in the package `shobdo`.

Only its database is read. The package declares Apache-2.0 and names no source for either, so they
are for trying a recipe out: nothing here puts them into the repository.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from webapp.recipes.corpora.base import Corpus, Example, chance, require

PACKAGE, VERSION, DATABASE = "shobdo", "0.2.2", "data/dictionary.db"
NUM_EXAMPLES = 2000
PARTS = {"বিশেষ্য": "noun", "বিশেষণ": "adjective"}
# A definition that begins with, or holds, the abbreviation of a part of speech gives it away.
GIVEN_AWAY = re.compile(r"(?<![\u0980-\u09ff])(বি|বিণ|ক্রি|অব্য|সর্ব|স্ত্রী)\.")
SHORTEST_CHARACTERS = 8


def corpus() -> Corpus:
    """Example sentences, one a document. Raises UserError where the package is not installed."""
    sentences = (one for (said,) in _rows("select examples from words") for one in _list(said))
    return Corpus(
        name="bengali-sentences",
        credit="Example sentences of the Python package shobdo 0.2.2 (declared Apache-2.0; their "
        "source is not named): for trying out, not to be passed on.",
        documents=list(dict.fromkeys(" ".join(one.split()) for one in sentences)),
    )


def parts_of_speech() -> list[Example]:
    """Definitions, and whether what they define is a noun or an adjective; those that define both,
    or say it themselves, are left out. Raises UserError where the package is not installed.
    """
    labels: dict[str, set[str]] = defaultdict(set)
    for part, said in _rows("select part_of_speech, meanings from words"):
        for one in _list(said):
            if part in PARTS and not GIVEN_AWAY.search(one) and len(one) >= SHORTEST_CHARACTERS:
                labels[" ".join(one.split())].add(PARTS[part])
    sure = [Example(text, label) for text, (label, *more) in labels.items() if not more]
    return sorted(sure, key=lambda example: chance(example.text))[:NUM_EXAMPLES]


def _rows(question: str) -> Iterator[tuple[Any, ...]]:
    path = require(PACKAGE, VERSION, DATABASE)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        yield from connection.execute(question)
    finally:
        connection.close()


def _list(said: str | None) -> list[str]:
    return json.loads(said) if said else []


LABELLED = {"bengali-part-of-speech": parts_of_speech}
