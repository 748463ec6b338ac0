"""A device that is killed goes on where the swarm's model is: no row is lost, none comes twice."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from functools import partial

import pytest
import torch
from tokenizers import Tokenizer as Encoder
from tokenizers import models, pre_tokenizers

from tests.factories import make_recipe
from tests.trainer.test_beside import OBJECTIVES
from tests.trainer.test_data import serve  # noqa: F401 - a fixture
from tests.trainer.test_hub import OWN, hub  # noqa: F401 - a fixture
from tests.trainer.test_kinds import dump, json_lines, table
from trainer.agent.shards import ShardHolder
from trainer.data import encoding
from trainer.data.pairs import pair_up
from trainer.engine.beside import Beside
from trainer.engine.delivery import Delivery
from trainer.engine.texts import shared_batches
from trainer.families.base import CAUSAL, MASKED, SPANS, Batch, Objective
from trainer.grant import Lease, ShardAnswer, ShardRequest
from trainer.recipe import DataSet, Text
from trainer.sources import base, http, stream
from trainer.text.tokenizer import SPECIAL, Tokenizer

NUM_SHARDS = 5
LENGTH = 16


def documents(count: int) -> list[str]:
    """Of 1 to 60 words, of which none is anywhere else; some are in sentences."""
    draw, made, number = random.Random(4), [], 0
    for _ in range(count):
        words = [f"w{number + n}" for n in range(draw.choice([1, 2, 3, 7, 20, 60]))]
        number += len(words)
        made.append(" ".join(f"{w}." if draw.random() < 0.2 else w for w in words))
    return made


ROWS = documents(220)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> Tokenizer:
    words = [*SPECIAL, *(f"<extra_id_{n}>" for n in range(20)), *" ".join(ROWS).split()]
    encoder = Encoder(models.WordLevel({w: n for n, w in enumerate(words)}, unk_token=SPECIAL[1]))
    encoder.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    encoder.save(str(path))
    made = Tokenizer(path, len(words))
    made.path = path
    return made


def wanted(tokenizer: Tokenizer, objective: Objective) -> set[int]:
    """All words; of pairs those of which there are pairs."""
    if objective.pairs:
        found = pair_up(ROWS, tokenizer, LENGTH - 3, torch.Generator())
        return {word for pair in found for word in pair.ids} - tokenizer.special
    return {word for ids in tokenizer.encode_all(ROWS) for word in ids}


class Site:
    """Leases the shards of a text to one device for one pass, as `webapp.shards` does."""

    def __init__(self) -> None:
        self.places: dict[int, tuple[int, int]] = dict.fromkeys(range(NUM_SHARDS), (0, 0))
        self.held: int | None = None

    def shard(self, slug: str, request: ShardRequest, timeout_s: float) -> ShardAnswer:
        if self.held is not None and request.shard == self.held and request.passes == 0:
            if request.finished:
                del self.places[self.held]
                self.held = None
            else:
                self.places[self.held] = request.position, request.skip
        if self.held is None:
            self.held = min(self.places, default=None)
        if self.held is None:
            return ShardAnswer(lease=None, reason="all was read")
        position, skip = self.places[self.held]
        facts = {"num_shards": NUM_SHARDS, "passes": 0, "valid_s": 600, "renew_s": 600}
        lease = Lease(shard=self.held, position=position, skip=skip, **facts)
        return ShardAnswer(lease=lease)


class Device:
    """Learns of a text in rounds, and is killed now and then; `seen` is what rounds were of."""

    def __init__(self, folder, text, path, tokenizer, objective, seed, is_beside=False) -> None:
        self._recipe = make_recipe(texts=(text,), sequence_length=LENGTH)
        self._make = partial(self._read, (path,), tokenizer, objective)
        self._site, self._ledger = Site(), folder / "reading.json"
        self._is_beside = is_beside
        self._draw, self._special = random.Random(seed), tokenizer.special
        self._wanted = wanted(tokenizer, objective)
        self.seen: set[int] = set()
        self.kills = 0

    def _read(self, paths, tokenizer, objective, seed, size, leases):
        return shared_batches(self._recipe, paths, tokenizer, objective, seed, size, leases)

    def run(self) -> None:
        """Until it has learned of every word, each in one place."""
        while len(self.seen) < len(self._wanted):
            self._live()
            self.kills += 1

    def _live(self) -> None:
        holder = ShardHolder(self._site, "demo", self, self._ledger)
        delivery = Delivery(holder)
        reader = Beside(self._make, holder) if self._is_beside else None
        try:
            self._learn_in_rounds(delivery, holder, reader)
        finally:
            if reader is not None:
                reader.close()

    def _learn_in_rounds(self, delivery, holder, reader) -> None:
        batches = self._stream(delivery, holder, reader)
        for _ in range(self._draw.randrange(12)):
            if self._draw.random() < 0.2:  # as after a source that could not be read
                batches = self._stream(delivery, holder, reader)
            gathered = [next(batches) for _ in range(self._draw.randint(1, 4))]
            for batch in gathered:
                self._learn(batch)
            delivery.keep(delivery.mark)
            if self.seen == self._wanted:
                return
        for _ in range(self._draw.randrange(5)):
            next(batches)

    def _stream(self, delivery, holder, reader) -> Iterator[Batch]:
        def size() -> int:
            return self._draw.randint(1, 3)

        if reader is None:
            return delivery.of(lambda: self._make("order", size, holder))
        return delivery.of(lambda: reader.batches("order", size))

    def _learn(self, batch: Batch) -> None:
        """After the last word it reads all of the text again, for it holds no lease any more."""
        is_target = batch.targets != Batch.IGNORE
        whole = torch.where(is_target, batch.targets, batch.ids)
        for word in whole[batch.attention == 1].flatten().tolist():
            if word in self._special or self.seen == self._wanted:
                continue
            assert word not in self.seen, f"{word} comes twice, after {self.kills} kills"
            self.seen.add(word)

    @property
    def recipe(self):
        return self._recipe

    @property
    def recipe_sha256(self) -> str:
        return self._recipe.sha256()


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Blocks, windows and what is encoded at once, so that shards have several of them."""
    monkeypatch.setattr(http, "BLOCK_BYTES", 700)
    monkeypatch.setattr(stream, "BLOCK_ITEMS", 16)
    monkeypatch.setattr(base, "SHUFFLED_DOCUMENTS", 9)
    monkeypatch.setattr(encoding, "AT_ONCE", 11)


ELSEWHERE = Text(kind="http", url="http://example.invalid/text")  # and a copy on this disk
CONTENTS = {
    "lines": lambda: "\n".join(ROWS).encode(),
    "gzip": lambda: gzip.compress(json_lines(ROWS)),
    "parquet": lambda: table(ROWS, 30),
    "dump": lambda: dump(ROWS),
}
# Whole words need tokens with signs that tell where one begins.
PLAIN = [one for one in OBJECTIVES if one != SPANS and not one.whole_words]


@pytest.mark.parametrize("objective", PLAIN, ids=str)
@pytest.mark.parametrize("kind", CONTENTS)
def test_c13_whenever_a_device_is_killed_no_row_is_lost_and_none_comes_twice(
    tmp_path, tokenizer, kind, objective
):
    path = tmp_path / "text"
    path.write_bytes(CONTENTS[kind]())
    learn(tmp_path, ELSEWHERE, path, tokenizer, objective)


def learn(folder, text, path, tokenizer, objective, *, is_beside=False, times=3) -> None:
    for number in range(times):
        (folder / str(number)).mkdir()
        seed = f"{text}/{objective}/{number}"
        device = Device(folder / str(number), text, path, tokenizer, objective, seed, is_beside)
        device.run()
        assert device.kills > 1


@pytest.mark.parametrize("ranged", [True, False])
def test_c13_so_of_a_web_address(tmp_path, tokenizer, serve, ranged):  # noqa: F811
    url = serve("\n".join(ROWS).encode(), ranged=ranged)
    learn(tmp_path, Text(kind="http", url=url), None, tokenizer, CAUSAL, times=1)


def test_c13_so_of_a_data_set_of_a_hub(tmp_path, tokenizer, hub):  # noqa: F811
    parts = ROWS[:90], ROWS[90:]
    files = [table([""] * len(rows), group=20, content=rows) for rows in parts]
    hub.files = {f"/api/datasets/{OWN[0]}/parquet/{OWN[1]}/{OWN[2]}": files}
    dataset = DataSet(name=OWN[0], config=OWN[1], split=OWN[2], column="content")
    learn(tmp_path, Text(kind="datasets", dataset=dataset), None, tokenizer, MASKED, times=1)


def test_c13_so_of_one_that_reads_beside(tmp_path, tokenizer):
    path = tmp_path / "text"
    path.write_text("\n".join(ROWS))
    learn(tmp_path, ELSEWHERE, path, tokenizer, CAUSAL, is_beside=True)
