"""`python -m trainer tokenizer` as a process: peak memory with more different words than it keeps,
and characters per token on text it has not seen, beside the library's own trainer."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from webapp.recipes.corpora.base import is_held_out, write
from webapp.recipes.corpora.english import corpus

SIZE = 8_000
SMALL_DOCUMENTS, TIMES = 45_000, 10
GOAL_BYTES = 1_000_000_000
GOAL_SHARE = 1.0  # of the library's characters per token
CONSONANTS, SIGNS = "কখগঘচছজটডতদনপবমযরলশসহ", ["", "া", "ি", "ী", "ু", "ে", "ো", "্র"]


class Run(NamedTuple):
    seconds: float
    peak_bytes: int


def make(text: Path, out: Path) -> Run:
    words = ["tokenizer", str(text), "--out", str(out), "--size", str(SIZE)]
    began = time.monotonic()
    program = subprocess.Popen([sys.executable, "-m", "trainer", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise RuntimeError(f"python -m trainer tokenizer ended with {program.returncode}")
    return Run(round(time.monotonic() - began, 1), used.ru_maxrss * 1024)


def write_made_up(path: Path, num_documents: int) -> None:
    """Words of one to seven syllables: the more there are, the more of them are different."""
    rng = random.Random(1)
    syllables = ["".join(pair) for pair in itertools.product(CONSONANTS, SIGNS)]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(num_documents):
            lengths = (1 + min(6, int(rng.expovariate(0.45))) for _ in range(14))
            words = ("".join(rng.choices(syllables, k=length)) for length in lengths)
            file.write(" ".join(words) + "\n")


def make_with_library(documents: list[str], like: Path) -> tuple[Any, float]:
    """A tokenizer of the same steps by `tokenizers`' own trainer, and the seconds that took."""
    from tokenizers import Tokenizer, models, trainers

    encoder = Tokenizer.from_file(str(like))
    encoder.model = models.Unigram()
    began = time.monotonic()
    trainer = trainers.UnigramTrainer(
        vocab_size=SIZE,
        special_tokens=["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
        unk_token="<unk>",
        show_progress=False,
    )
    encoder.train_from_iterator(documents, trainer)
    return encoder, round(time.monotonic() - began, 1)


def characters_per_token(encoder: Any, texts: list[str]) -> float:
    tokens = sum(len(encoder.encode(text, add_special_tokens=False).ids) for text in texts)
    return round(sum(map(len, texts)) / tokens, 3)


def main() -> dict[str, Any]:
    from tokenizers import Tokenizer

    text = corpus()
    seen = [document for document in text.documents if not is_held_out(document)]
    unseen = [document for document in text.documents if is_held_out(document)]
    with tempfile.TemporaryDirectory(prefix="potluck-tokenizer-") as name:
        folder = Path(name)
        write(seen, folder / "real.jsonl")
        real = make(folder / "real.jsonl", folder / "real.json")
        again = make(folder / "real.jsonl", folder / "again.json")
        same = (folder / "real.json").read_bytes() == (folder / "again.json").read_bytes()
        ours = characters_per_token(Tokenizer.from_file(str(folder / "real.json")), unseen)
        encoder, library_s = make_with_library(seen, folder / "real.json")
        theirs = characters_per_token(encoder, unseen)
        made_up = []
        for times in (1, TIMES):
            write_made_up(folder / "made-up.txt", SMALL_DOCUMENTS * times)
            size_mb = round((folder / "made-up.txt").stat().st_size / 1e6, 1)
            run = make(folder / "made-up.txt", folder / "made-up.json")
            made_up.append({"megabytes": size_mb, **run._asdict()})
    peak = max(run["peak_bytes"] for run in made_up)
    return {
        "met": peak <= GOAL_BYTES and ours >= GOAL_SHARE * theirs and same,
        "text": text.name,
        "same_bytes": same,
        "real": [real._asdict(), again._asdict()],
        "library_s": library_s,
        "characters_per_token": ours,
        "library_characters_per_token": theirs,
        "made_up": made_up,
    }
