"""A server that answers as a hub does, with what a test gives it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def hub(places: dict[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """Its address, and what it was asked for; 404 for everything else."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = places.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def listing(name: str, config: str) -> tuple[str, bytes]:
    """Where a hub lists a data set's files, and one that it lists."""
    place = f"/api/datasets/{name}/parquet/{config}/train"
    return place, json.dumps([f"https://elsewhere.invalid/{name}/0.parquet"]).encode()
