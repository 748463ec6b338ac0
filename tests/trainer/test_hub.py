"""Data sets by their name: a local server that lists and serves files as a hub does."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice

import pytest

from tests.trainer.test_kinds import ROWS, table
from trainer.data.mixture import open_source
from trainer.recipe import DataSet, Text
from trainer.sources.base import SourceUnavailable
from trainer.sources.hub import HubSource

OWN = "org/texts", "bn", "train"
PLACE = "/api/datasets/{}/parquet/{}/{}".format(*OWN)


class Hub(BaseHTTPRequestHandler):
    """Lists files, refers to another place for each as a hub does, and serves those by ranges."""

    files: list[bytes]
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        if self.path == PLACE:
            urls = [f"https://elsewhere.invalid/{n}" for n in range(len(self.files))]
            self._answer(200, json.dumps(urls).encode())
        elif self.path.startswith(f"{PLACE}/"):
            number = self.path.removeprefix(f"{PLACE}/").removesuffix(".parquet")
            host = self.headers["Host"].replace("127.0.0.1", "localhost")
            self._answer(302, b"", Location=f"http://{host}/store/{number}")
        elif self.path.startswith("/store/"):
            content = self.files[int(self.path.removeprefix("/store/"))]
            start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
            self._answer(206 if start else 200, content[start:], **{"Accept-Ranges": "bytes"})
        else:
            self._answer(404, b'{"error": "no such data set"}')

    do_HEAD = do_GET

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def hub(monkeypatch) -> Iterator[type[Hub]]:
    """Of three files with all rows in the column `content`, and in groups of 50."""
    parts = [ROWS[:300], ROWS[300:310], ROWS[310:]]
    Hub.files = [table([""] * len(rows), group=50, content=rows) for rows in parts]
    Hub.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield Hub
    server.shutdown()
    server.server_close()


def named(**more) -> DataSet:
    return DataSet(name=OWN[0], config=OWN[1], split=OWN[2], **{"column": "content", **more})


@pytest.mark.parametrize("of", [1, 2, 5, 64])
def test_c13_each_row_of_a_data_set_is_in_one_shard_and_resumed_exactly(hub, of):
    source = HubSource(named(), pause_s=0.01)
    found = [list(source.shard(number, of, "order")) for number in range(of)]
    assert Counter(piece.document for shard in found for piece in shard) == Counter(ROWS)
    whole = max(found, key=len)
    number = found.index(whole)
    for stop in (1, len(whole) // 2, len(whole) - 1):
        begun = list(islice(source.shard(number, of, "order"), stop))
        assert begun + list(source.shard(number, of, "order", begun[-1].done)) == whole
    assert whole[-1].done == whole[-1].total


def test_a_recipe_names_a_data_set_and_a_pass_has_each_row_once(hub):
    text = Text(kind="datasets", dataset=named())
    source = open_source(Text.model_validate_json(text.model_dump_json()), None)
    orders = [list(source.documents(seed)) for seed in "aab"]
    assert sorted(orders[0]) == sorted(ROWS) and orders[0] == orders[1] != orders[2]
    assert source.tally.read == 3 * len(ROWS)


def test_a_token_goes_to_the_hub_and_not_to_where_it_refers(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert len(list(HubSource(named(), pause_s=0.01).documents("x"))) == len(ROWS)
    assert {token for path, token in hub.asked if path.startswith("/api/")} == {"Bearer hf_secret"}
    assert {token for path, token in hub.asked if path.startswith("/store/")} == {None}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"column": "absent"}, "it has no column absent, but text, content"),
        ({"name": "org/other"}, "other/parquet/bn/train: HTTP Error 404"),
    ],
)
def test_a_data_set_that_is_not_there_is_an_error_with_its_address(hub, changed, says):
    dataset = named().model_copy(update=changed)
    with pytest.raises(SourceUnavailable, match=says):
        next(HubSource(dataset, pause_s=0.01).documents("x"))


def test_a_hub_without_files_is_asked_again_the_next_time(hub):
    files, hub.files = hub.files, []
    source = HubSource(named(), pause_s=0.01)
    with pytest.raises(SourceUnavailable, match="lists no files"):
        next(source.shard(0, 1, "x"))
    hub.files = files
    assert len(list(source.shard(0, 1, "x"))) == len(ROWS)


@pytest.mark.parametrize("text", [{"kind": "datasets"}, {"kind": "datasets", "url": "http://x"}])
def test_a_text_of_a_hub_without_a_name_is_refused(text):
    with pytest.raises(ValueError, match="does not say where it is"):
        Text(**text)
