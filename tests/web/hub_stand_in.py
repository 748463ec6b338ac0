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


def published_tokenizer() -> bytes:
    """In the form of sahajBERT's, as the library wrote it in 2021, with eleven tokens."""
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    pieces = ["▁", "।", "র", "▁করে", "▁আমি", "▁বাড়ি"]
    blank = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    words = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    steps: list[dict[str, object]] = [
        {"type": "Nmt"},
        {"type": "NFKC"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        {"type": "Replace", "pattern": {"String": "|"}, "content": "।"},
        {"type": "Replace", "pattern": {"Regex": "(?<=[\u0980-\u09ff]):"}, "content": "ঃ"},
        {"type": "Lowercase"},
    ]
    written = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "special": True, "content": token, **blank}
            for number, token in enumerate(special)
        ],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                words,
                {"type": "Digits", "individual_digits": True},
                {"type": "Punctuation"},
            ],
        },
        "post_processor": None,
        "decoder": words,
        "model": {
            "type": "Unigram",
            "unk_id": 1,
            "vocab": [[t, 0.0] for t in special] + [[p, -5.0 - n] for n, p in enumerate(pieces)],
        },
    }
    return json.dumps(written, ensure_ascii=False).encode()
