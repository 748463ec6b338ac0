"""Text of each kind made into masked batches beside a trainer: its speed by that of the tokenizer
alone, and the share of the time in which the trainer waits for text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import torch
from tokenizers import Tokenizer as Encoder

from bench.tokenizer import make
from trainer import catalogue
from trainer.data.batches import marked_batches
from trainer.data.mixture import Mixture
from trainer.engine.beside import Beside
from trainer.families.base import MASKED, Batch
from trainer.recipe import Choice
from trainer.sources.kinds import TextSource
from trainer.sources.places import Disk
from trainer.text.tokenizer import Tokenizer
from webapp.recipes.corpora.base import write
from webapp.recipes.corpora.english import corpus

LENGTH, ROWS = 512, 8
DOCUMENTS = 1_200
REPEATS = 2
TRAINED_BATCHES, WARM_BATCHES = 20, 4
GOAL_SHARE, GOAL_WAIT = 0.9, 0.02
PAGE = "<page><ns>0</ns><revision><text>{}</text></revision></page>\n"
SIZES = {"hidden": 128, "layers": 2, "heads": 4, "length": LENGTH}


def contents(documents: list[str], lines: bytes) -> dict[str, bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.BufferOutputStream()
    parquet.write_table(pa.table({"text": documents}), table, row_group_size=1000)
    pages = "".join(PAGE.format(escape(document)) for document in documents)
    dump = f"<mediawiki>{pages}</mediawiki>".encode()
    return {
        "lines": lines,
        "gzip": gzip.compress(lines),
        "bzip2": bz2.compress(lines),
        "xz": lzma.compress(lines, preset=1),
        "zstd": pa.Codec("zstd").compress(lines, asbytes=True),
        "parquet": table.getvalue().to_pybytes(),
        "dump": dump,
        "dump, bzip2": bz2.compress(dump),
    }


class Timed(Tokenizer):
    """Counts its own seconds of processor."""

    seconds = 0.0

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        begun = time.process_time()
        found = super().encode_all(texts)
        self.seconds += time.process_time() - begun
        return found


class Spent(NamedTuple):
    """Seconds of processor until a batch was made: of the process, and of the tokenizer in it."""

    all_s: float
    tokenizer_s: float


@contextmanager
def beside(path: Path, tokenizer: Timed) -> Iterator[Iterator[tuple[Batch, Any]]]:
    """The batches of a text, made in another process, each with what had been spent there."""

    def made(seed: str, size: Callable[[], int], _: Any) -> Iterator[tuple[Batch, Any]]:
        documents = Mixture([TextSource(Disk(path))], [1.0], seed).documents()
        for batch, _ in marked_batches(
            documents, tokenizer, MASKED, length=LENGTH, size=size, seed=1
        ):
            yield batch, Spent(time.process_time(), tokenizer.seconds)

    reader = Beside(made, None)
    try:
        yield reader.batches("bench", lambda: ROWS)
    finally:
        reader.close()


def tokenizers_share(path: Path, tokenizer: Timed, num_batches: int) -> float:
    """Of the processor's time in the process that makes batches: so near does it come to the
    tokenizer's own speed, whatever else the machine does meanwhile."""
    with beside(path, tokenizer) as batches:
        spent = [told for _, told in islice(batches, WARM_BATCHES + num_batches)]
    first, last = spent[WARM_BATCHES - 1], spent[-1]
    return (last.tokenizer_s - first.tokenizer_s) / (last.all_s - first.all_s)


def wait_share(path: Path, tokenizer: Timed) -> dict[str, float]:
    """Of the time of a small model's steps, until its batch is there."""
    family = catalogue.create("families", Choice(name="albert", params=SIZES))
    model = family.build(tokenizer.vocab_size, LENGTH, tokenizer.pad)
    optimizer = torch.optim.AdamW(model.parameters())
    began = waiting = 0.0
    with beside(path, tokenizer) as batches:
        for number in range(WARM_BATCHES + TRAINED_BATCHES):
            if number == WARM_BATCHES:
                began, waiting = time.monotonic(), 0.0
            asked = time.monotonic()
            batch, _ = next(batches)
            waiting += time.monotonic() - asked
            optimizer.zero_grad()
            (family.loss_sum(model, batch) / batch.tokens).backward()
            optimizer.step()
    seconds = time.monotonic() - began
    return {"share": waiting / seconds, "seconds_a_batch": round(seconds / TRAINED_BATCHES, 3)}


def main() -> dict[str, Any]:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    text = corpus()
    documents = [" ".join(document.split()) for document in text.documents[:DOCUMENTS]]
    with tempfile.TemporaryDirectory(prefix="potluck-stream-") as name:
        folder = Path(name)
        write(documents, folder / "lines")
        make(folder / "lines", folder / "tokenizer.json")
        size = Encoder.from_file(str(folder / "tokenizer.json")).get_vocab_size()
        tokenizer = Timed(folder / "tokenizer.json", size)
        num_batches = sum(map(len, tokenizer.encode_all(documents))) // (ROWS * LENGTH)
        shares: dict[str, list[float]] = {}
        for _ in range(REPEATS):
            for kind, content in contents(documents, (folder / "lines").read_bytes()).items():
                (folder / "text").write_bytes(content)
                share = tokenizers_share(folder / "text", tokenizer, num_batches)
                shares.setdefault(kind, []).append(share)
        wait = wait_share(folder / "lines", tokenizer)
    middle = {kind: round(statistics.median(found), 3) for kind, found in shares.items()}
    lines = middle["lines"]
    return {
        "value": lines,
        "unit": "of the tokenizer's own batch speed, by processor time, from lines",
        "goal": f">= {GOAL_SHARE}, and the trainer waits < {GOAL_WAIT} of its time",
        "met": lines >= GOAL_SHARE and wait["share"] < GOAL_WAIT,
        "by_kind": middle,
        "waits": {**wait, "share": round(wait["share"], 4)},
        "text": text.name,
        "batches": num_batches,
    }
