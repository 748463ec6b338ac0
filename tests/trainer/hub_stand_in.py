"""A local server that lists and serves the files of data sets as a hub does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet


class Hub(BaseHTTPRequestHandler):
    """Lists files, refers to another place for each as a hub does, and serves those by ranges.

    `files`: of each address of a split, `/api/datasets/NAME/parquet/CONFIG/SPLIT`; `pages`: more.
    """

    files: dict[str, list[bytes]]
    pages: dict[str, bytes]
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        place, _, last = self.path.rpartition("/")
        if self.path in self.files:
            urls = [f"https://elsewhere.invalid/{n}" for n in range(len(self.files[self.path]))]
            self._answer(200, json.dumps(urls).encode())
        elif place in self.files:
            host = self.headers["Host"].replace("127.0.0.1", "localhost")
            number = last.removesuffix(".parquet")
            self._answer(302, b"", Location=f"http://{host}/store{place}/{number}")
        elif place.removeprefix("/store") in self.files:
            self._ranged(self.files[place.removeprefix("/store")][int(last)])
        elif self.path in self.pages:
            self._ranged(self.pages[self.path])
        else:
            self._answer(404, b'{"error": "no such data set"}')

    do_HEAD = do_GET

    def _ranged(self, content: bytes) -> None:
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        self._answer(206 if start else 200, content[start:], **{"Accept-Ranges": "bytes"})

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


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    """What programs that this process starts take for the hub, too; nothing is on it yet."""
    Hub.files, Hub.pages, Hub.asked = {}, {}, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    try:
        yield Hub
    finally:
        server.shutdown()
        server.server_close()


def put(
    hub: type[Hub],
    name: str,
    split: str,
    config: str = "bn",
    features: Any = None,
    **columns: list[Any],
) -> None:
    """One file of a split, with what the library `datasets` writes beside its columns."""
    table = pa.table(columns)
    if features:
        known = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": known})
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    place = f"/api/datasets/{name}/parquet/{config}/{split}"
    hub.files.setdefault(place, []).append(sink.getvalue().to_pybytes())
