"""Text becomes batches: sources, mixture, packing, masking, and what each peer sees of them."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import pytest
import torch

from trainer.data.batches import batches
from trainer.data.masking import mask
from trainer.data.mixture import Mixture
from trainer.data.packing import pack
from trainer.families.base import CAUSAL, MASKED, Batch
from trainer.sources import base
from trainer.sources.base import SourceUnavailable, shuffled
from trainer.sources.file import FileSource
from trainer.sources.http import HttpSource
from trainer.sources.places import Web
from trainer.text.tokenizer import SPECIAL, Tokenizer, TokenizerError, train_tokenizer

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
TEXTS = [" ".join(WORDS[(i * j) % 8] for j in range(1, 12)) for i in range(1, 40)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    train_tokenizer(TEXTS, path, 300)
    return Tokenizer(path, 300)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_training_a_tokenizer_twice_gives_the_same_file(tmp_path: Path):
    for name in "ab":
        train_tokenizer(TEXTS, tmp_path / name, 300)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    vocabulary = json.loads((tmp_path / "a").read_text())["model"]["vocab"]
    assert [vocabulary[token] for token in SPECIAL] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("texts", [[], ["", "  \n"]])
def test_a_tokenizer_without_text_is_refused(tmp_path: Path, texts: list[str]):
    with pytest.raises(TokenizerError, match="no text"):
        train_tokenizer(texts, tmp_path / "tokenizer.json", 300)


def test_a_broken_tokenizer_file_is_refused(tmp_path: Path):
    (tmp_path / "t.json").write_text("{")
    with pytest.raises(TokenizerError, match=r"t\.json"):
        Tokenizer(tmp_path / "t.json", 300)


def test_c09_a_three_token_text_has_a_target(tokenizer: Tokenizer):
    ids = torch.tensor([[tokenizer.start, 50, tokenizer.end] + [tokenizer.pad] * 5])
    for seed in range(50):
        batch = mask(ids, tokenizer, generator(seed))
        assert batch is not None and batch.tokens == 1 and batch.targets[0, 1] == 50


def test_c09_a_batch_of_padding_alone_is_skipped(tokenizer: Tokenizer):
    assert mask(torch.full((4, 8), tokenizer.pad), tokenizer, generator()) is None


def test_c09_masking_keeps_its_shares_and_spares_special_tokens(tokenizer: Tokenizer):
    ids = torch.randint(5, 300, (10_000, 32), generator=generator())
    ids[:, 0], ids[:, -2], ids[:, -1] = tokenizer.start, tokenizer.end, tokenizer.pad
    batch = mask(ids, tokenizer, generator(1))
    assert batch is not None
    chosen = batch.targets != Batch.IGNORE
    assert not chosen[:, 0].any() and not chosen[:, -2:].any()
    assert abs(chosen[:, 1:-2].float().mean() - 0.15) < 0.005
    assert torch.equal(batch.targets[chosen], ids[chosen])
    masked = (batch.ids[chosen] == tokenizer.mask).float().mean()
    kept = (batch.ids[chosen] == ids[chosen]).float().mean()
    assert abs(masked - 0.8) < 0.01 and abs(kept - 0.1) < 0.01
    assert torch.equal(batch.ids[~chosen], ids[~chosen])
    assert torch.equal(batch.attention, (ids != tokenizer.pad).long())


@pytest.mark.parametrize("objective", [MASKED, CAUSAL])
def test_sequences_are_packed_without_padding(tokenizer: Tokenizer, objective):
    found = list(batches(TEXTS, tokenizer, objective, length=16, size=lambda: 4, seed=1))
    assert all(batch.ids.shape == (4, 16) for batch in found[:-1])
    assert all(bool(batch.attention.all()) for batch in found[:-1])
    assert all(batch.tokens > 0 for batch in found)


def test_c07_a_book_on_one_line_is_packed_in_no_more_than_the_time_it_takes_to_read_it():
    class Ids:
        """A tokenizer for which a document is a million tokens."""

        start, end = None, 0

        def encode_all(self, texts: list[str]) -> list[list[int]]:
            return [list(range(1, 1_000_001)) for _ in texts]

    found = list(pack(["book"] * 2, Ids(), 16, framed=False))
    assert [one for row in found for one in row] == [*range(1, 1_000_001), 0] * 2
    assert {len(row) for row in found[:-1]} == {16}


def test_a_causal_target_is_never_the_first_token_or_padding(tokenizer: Tokenizer):
    (batch,) = batches(["alpha beta"], tokenizer, CAUSAL, length=16, size=lambda: 4, seed=1)
    length = int(batch.attention.sum())
    assert batch.tokens == length - 1 and batch.targets[0, 0] == Batch.IGNORE


def numbered(path: Path, count: int) -> Path:
    path.write_text("".join(json.dumps({"text": f"row {i}"}) + "\n" for i in range(count)))
    return path


def test_c13_a_peer_sees_each_row_once_a_pass_in_an_order_of_its_own(tmp_path: Path):
    source = FileSource(numbered(tmp_path / "rows.jsonl", 2000))
    orders = {name: list(source.documents(f"0/{name}/1")) for name in ("anna", "bela", "cyril")}
    everything = {f"row {i}" for i in range(2000)}
    for order in orders.values():
        assert len(order) == 2000 and set(order) == everything
    assert len(set(orders["anna"][:100]) & set(orders["bela"][:100])) < 20
    assert orders["anna"] == list(source.documents("0/anna/1"))
    assert orders["anna"][:100] != list(islice(source.documents("0/anna/2"), 100))


def test_broken_lines_are_counted_and_skipped(tmp_path: Path):
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(b'{"text": "good"}\n{"text": 5}\n{"no": 1}\n{"te\n\xff\xfe\n\nplain words\n')
    source = FileSource(path)
    assert sorted(source.documents("x")) == ["good", "plain words"]
    assert (source.tally.read, source.tally.broken) == (2, 4)


def test_shuffling_holds_as_many_characters_as_it_may_whatever_documents_are_like(monkeypatch):
    monkeypatch.setattr(base, "SHUFFLED_CHARACTERS", 100)
    taken = 0

    def documents():
        nonlocal taken
        for number in range(50):
            taken += 1
            yield f"{number:030}"

    for number, _ in enumerate(shuffled(documents(), random.Random(1)), 1):
        assert taken - number <= 3 or taken == 50
    assert number == 50


def test_a_mixture_follows_its_weights(tmp_path: Path):
    parts = []
    for name in ("left", "right"):
        (tmp_path / name).write_text(f"{name}\n" * 10)
        parts.append(FileSource(tmp_path / name))
    seen = list(islice(Mixture(parts, [3.0, 1.0], "seed"), 4000))
    assert abs(seen.count("left") / 4000 - 0.75) < 0.03


def test_a_text_without_a_readable_line_is_an_error(tmp_path: Path):
    (tmp_path / "empty").write_text("\n\n")
    with pytest.raises(SourceUnavailable, match="no readable line"):
        next(iter(Mixture([FileSource(tmp_path / "empty")], [1.0], "seed")))


class Handler(BaseHTTPRequestHandler):
    """Serves one file, with ranges if asked to, and breaks off the first replies if asked to."""

    def __init__(self, content: bytes, ranged: bool, breaks: list[int], *rest) -> None:
        self.content, self.ranged, self.breaks = content, ranged, breaks
        super().__init__(*rest)

    def _head(self) -> bytes:
        given = self.headers.get("Range", "") if self.ranged else ""
        start = int(given.removeprefix("bytes=").rstrip("-") or 0)
        body = self.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        if self.ranged:
            self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        return body

    def do_HEAD(self) -> None:
        self._head()

    def do_GET(self) -> None:
        body = self._head()
        if self.breaks:
            body = body[: self.breaks.pop()]
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def serve() -> Iterator:
    servers = []

    def start(content: bytes, ranged: bool = True, breaks: list[int] | None = None) -> str:
        server = ThreadingHTTPServer(
            ("127.0.0.1", 0), partial(Handler, content, ranged, breaks or [])
        )
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/text"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("ranged", [True, False])
def test_http_text_comes_complete_and_once_over_broken_connections(serve, ranged: bool):
    rows = [f"row {i}" for i in range(3000)]
    url = serve(("\n".join(rows) + "\n").encode(), ranged=ranged, breaks=[700, 20_000])
    seen = list(HttpSource(Web(url, pause_s=0.01)).documents("seed"))
    assert sorted(seen) == sorted(rows)
    assert seen != rows


def test_http_text_that_is_gone_is_an_error_with_its_address():
    source = HttpSource(Web("http://127.0.0.1:9/text", pause_s=0.01))
    with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1:9"):
        next(source.documents("seed"))


def test_c16_a_row_without_a_token_is_never_put_in_place_of_one(tokenizer: Tokenizer, tmp_path):
    train_tokenizer(TEXTS, tmp_path / "tokenizer.json", 300)
    roomy = Tokenizer(tmp_path / "tokenizer.json", 1000)
    assert roomy.num_tokens == tokenizer.num_tokens < 301
    batch = mask(torch.randint(5, roomy.num_tokens, (500, 32)), roomy, generator())
    assert batch is not None and int(batch.ids.max()) < roomy.num_tokens
