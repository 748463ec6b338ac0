"""Texts read in a process beside the one that trains: the same batches, and what goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import psutil
import pytest
import torch

from tests.factories import make_recipe
from tests.trainer.test_masked_words import COUNTING
from tests.waiting import wait_for
from trainer.device import memory
from trainer.engine import reading, sizing
from trainer.engine.beside import Beside
from trainer.engine.job import Job
from trainer.engine.reading import reading_of
from trainer.engine.texts import shared_batches
from trainer.families.base import CAUSAL, MASKED, SPANS, Objective
from trainer.planner.need import need_of
from trainer.recipe import Text
from trainer.sources.base import SourceUnavailable
from trainer.swarm.orphans import ProcessEnded
from trainer.text.tokenizer import Tokenizer, train_tokenizer
from trainer.wire import Role

SENTINELS = [f"<extra_id_{number}>" for number in range(20)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> Tokenizer:
    from tokenizers import Tokenizer as Encoder

    path = tmp_path_factory.mktemp("beside") / "tokenizer.json"
    train_tokenizer(COUNTING * 20, path, 400)
    encoder = Encoder.from_file(str(path))
    encoder.add_special_tokens(SENTINELS)
    encoder.save(str(path))
    return Tokenizer(path, 500)


@pytest.fixture
def lines(tmp_path) -> Path:
    path = tmp_path / "lines"
    path.write_text("".join(f"{COUNTING[n % len(COUNTING)]} number {n}.\n" for n in range(500)))
    return path


@pytest.fixture
def start():
    """Starts one that makes batches so, and ends it after the test."""
    started = []

    def start(make, shards=None) -> Beside:
        started.append(Beside(make, shards))
        return started[-1]

    yield start
    for one in started:
        one.close()


def maker(path: Path, tokenizer: Tokenizer, objective: Objective = CAUSAL):
    recipe = make_recipe(texts=(Text(kind="local", path=str(path)),), sequence_length=32)

    def make(seed, size, leases):
        return shared_batches(recipe, (path,), tokenizer, objective, seed, size, leases)

    return make


def sizes():
    numbers = cycle([3, 1, 8, 5])
    return lambda: next(numbers)


OBJECTIVES = [
    MASKED,
    Objective("masked", whole_words=True),
    Objective("masked", pairs=True),
    CAUSAL,
    SPANS,
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_batches_made_beside_are_bit_for_bit_those_made_here(lines, tokenizer, start, objective):
    make = maker(lines, tokenizer, objective)
    here = list(islice(make("seed", sizes(), None), 60))
    there = list(islice(start(make).batches("seed", sizes()), 60))
    for (one, _), (other, _) in zip(here, there, strict=True):
        for name, tensor in vars(one).items():
            found = vars(other)[name]
            assert found is tensor is None or (
                torch.equal(found, tensor) and found.dtype is tensor.dtype
            )


def test_a_source_that_dies_beside_is_the_same_error_here_and_it_reads_on_when_asked(
    lines, tokenizer, start
):
    beside = start(maker(lines, tokenizer))
    kept = lines.rename(lines.with_name("away"))
    for _ in range(2):
        with pytest.raises(SourceUnavailable, match="lines: No such file"):
            next(beside.batches("seed", lambda: 4))
    kept.rename(lines)
    batch, _ = next(beside.batches("seed", lambda: 4))
    assert batch.samples == 4


class Odd(Exception):
    """Cannot be sent: it is made of two words, and knows one."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one + other)


def test_an_error_of_any_kind_is_told_here(start):
    def make(seed, size, leases):
        raise Odd("strange ", "words")
        yield

    with pytest.raises(RuntimeError, match="Odd: strange words"):
        next(start(make).batches("seed", lambda: 4))


def test_when_the_process_beside_is_killed_whoever_trains_hears_which_one_it_was_and_why(
    lines, tokenizer, start
):
    beside = start(maker(lines, tokenizer))
    batches = beside.batches("seed", lambda: 4)
    next(batches)
    (child,) = psutil.Process().children()
    child.kill()
    with pytest.raises(ProcessEnded, match="reads its texts was killed"):
        list(batches)
    with pytest.raises(ProcessEnded):
        next(beside.batches("again", lambda: 4))


PARENT = """
import sys, time
from trainer.engine.beside import Beside
def make(seed, size, leases):
    while True:
        time.sleep(60)
        yield
beside = Beside(make, None)
print(beside._process.pid, flush=True)
next(beside.batches("seed", lambda: 4))
"""


def test_the_process_beside_ends_with_the_one_that_trains_however_that_ends():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    wait_for("end", lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize(("has_room", "processes"), [(True, 1), (False, 0)])
def test_it_is_not_started_where_memory_is_short_and_batches_are_the_same(
    lines, tokenizer, tmp_path, monkeypatch, has_room, processes
):
    monkeypatch.setattr(reading, "has_room_beside", lambda recipe: has_room)
    recipe = make_recipe(texts=(Text(kind="local", path=str(lines)),), sequence_length=32)
    values = dict.fromkeys(Job.__dataclass_fields__)
    job = Job(
        **values | {"recipe": recipe, "role": Role.PEER, "folder": tmp_path, "texts": (lines,)}
    )
    with reading_of(job, tokenizer) as found:
        batches = list(islice(found.batches("me", lambda: 4), 5))
        assert len(psutil.Process().children()) == processes
    assert psutil.Process().children() == []
    make = maker(lines, tokenizer, MASKED)
    own = list(islice(make(f"{recipe.seed}/me/1/0", lambda: 4, None), 5))
    assert all(torch.equal(a.ids, b.ids) for a, (b, _) in zip(batches, own, strict=True))
    assert (tmp_path / "starts").read_text() == "1"


def test_a_coordinator_reads_nothing_and_starts_nothing(tmp_path, tokenizer):
    job = Job(**dict.fromkeys(Job.__dataclass_fields__) | {"role": Role.COORDINATOR})
    with reading_of(job, tokenizer) as found:
        assert found is None and psutil.Process().children() == []


def test_texts_are_read_beside_only_where_memory_is_ample(monkeypatch):
    recipe = make_recipe()
    need_bytes = need_of(recipe, on_gpu=False).host_bytes
    for room_bytes, has_room in ((need_bytes, False), (2 * need_bytes, True)):
        monkeypatch.setattr(memory, "room_bytes", lambda room_bytes=room_bytes: room_bytes)
        assert sizing.has_room_beside(recipe) is has_room
