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
from typing import Any
from xml.sax.saxutils import escape

import psutil
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
DOCUMENTS = 2_000
REPEATS = 3
TRAINED_BATCHES, WARM_BATCHES = 40, 4
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


@contextmanager
def beside(path: Path, tokenizer: Tokenizer) -> Iterator[tuple[Iterator[Batch], psutil.Process]]:
    """The batches of a text, and the process that makes them."""

    def made(seed: str, size: Callable[[], int], _: Any) -> Any:
        documents = Mixture([TextSource(Disk(path))], [1.0], seed).documents()
        return marked_batches(documents, tokenizer, MASKED, length=LENGTH, size=size, seed=1)

    before = set(psutil.Process().children())
    reader = Beside(made, None)
    try:
        (process,) = set(psutil.Process().children()) - before
        yield (batch for batch, _ in reader.batches("bench", lambda: ROWS)), process
    finally:
        reader.close()


def processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def seconds_a_token(path: Path, tokenizer: Tokenizer, tokens: int) -> float:
    """Of processor, in the process that makes batches; once through the text."""
    num_batches = tokens // (ROWS * LENGTH)
    with beside(path, tokenizer) as (batches, process):
        begun = processor_s(process)
        for _ in islice(batches, num_batches):
            pass
        return (processor_s(process) - begun) / (num_batches * ROWS * LENGTH)


def alone(tokenizer: Tokenizer, documents: list[str]) -> tuple[float, int]:
    """The same of the tokenizer, which gets all documents in one call; and how many tokens."""
    begun = time.process_time()
    tokens = sum(map(len, tokenizer.encode_all(documents)))
    return (time.process_time() - begun) / tokens, tokens


def wait_share(path: Path, tokenizer: Tokenizer) -> dict[str, float]:
    """Of the time of a small model's steps, until its batch is there."""
    family = catalogue.create("families", Choice(name="albert", params=SIZES))
    model = family.build(tokenizer.vocab_size, LENGTH, tokenizer.pad)
    optimizer = torch.optim.AdamW(model.parameters())
    began = waiting = 0.0
    with beside(path, tokenizer) as (batches, _):
        for number in range(WARM_BATCHES + TRAINED_BATCHES):
            if number == WARM_BATCHES:
                began, waiting = time.monotonic(), 0.0
            asked = time.monotonic()
            batch = next(batches)
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
        tokenizer = Tokenizer(folder / "tokenizer.json", size)
        shares: dict[str, list[float]] = {}
        for _ in range(REPEATS):
            for kind, content in contents(documents, (folder / "lines").read_bytes()).items():
                (folder / "text").write_bytes(content)
                base, tokens = alone(tokenizer, documents)
                taken = seconds_a_token(folder / "text", tokenizer, tokens)
                shares.setdefault(kind, []).append(base / taken)
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
        "tokens": tokens,
    }
