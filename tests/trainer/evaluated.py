"""Tiny models with a tokenizer, and labelled data that a model can learn in seconds."""

from __future__ import annotations

import random
from pathlib import Path

from tests.trainer.bengali import EVERYTHING
from tests.trainer.tiny_bases import make_base
from trainer.text.tokenizer import train_tokenizer

PLACES, PEOPLE, DEEDS = ["Dhaka", "Paris"], ["Asha", "Rahim"], ["sees", "leaves", "likes"]


def told(*_):
    """Nobody listens."""


def make_model(folder: Path, make: str = "bert") -> Path:
    """A folder that `save_pretrained` wrote, and its tokenizer in it."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [*EVERYTHING, *(" ".join([*PLACES, *PEOPLE, *DEEDS]) for _ in range(20))]
    size = train_tokenizer(words, folder / "tokenizer.json", 400)
    return make_base(folder, make, size)


def write_tags(path: Path, rows: int, seed: int = 0, *, iob: bool = True) -> Path:
    """Sentences like `Asha Rahim leaves Dhaka`, in IOB or with parts of speech."""
    rng = random.Random(seed)
    lines = []
    for _ in range(rows):
        names = rng.sample(PEOPLE, rng.choice([1, 2]))
        for number, name in enumerate(names):
            lines.append(f"{name}\tx\t{('B-PER', 'I-PER')[number] if iob else 'NOUN'}")
        lines.append(f"{rng.choice(DEEDS)}\tx\t{'O' if iob else 'VERB'}")
        lines += [f"{rng.choice(PLACES)}\tx\t{'B-LOC' if iob else 'NOUN'}", ""]
    path.write_text("\n".join(lines))
    return path


def write_classes(path: Path, rows: int, seed: int = 0) -> Path:
    rng = random.Random(seed)
    lines = ["label,text"]
    for _ in range(rows):
        kind, words = rng.choice([("people", PEOPLE), ("places", PLACES)])
        lines.append(f'{kind},"{", ".join(rng.choices(words, k=3))}"')
    path.write_text("\n".join(lines))
    return path
