"""A site as far as a device asks it before and while it joins; every join is refused."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
import time
from pathlib import Path

from tests.trainer.models import make_recipe
from trainer.agent.seat import Seat
from trainer.launcher.place import make_folder, site_folder, store_device
from trainer.recipe import Choice, File, Recipe, Text, Tokenizer
from trainer.text.tokenizer import train_tokenizer

SLUG = "tiny"
PLACE = f"/api/v1/device/collaborations/{SLUG}"


def private_recipe(tokenizer: Path) -> Recipe:
    """A tokenizer is made there."""
    size = train_tokenizer([f"note {number}" for number in range(50)], tokenizer, 300)
    content = tokenizer.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    file = File(sha256=digest, size_bytes=len(content), filename=tokenizer.name)
    return make_recipe(
        "causal",
        texts=(Text(kind="private"),),
        tokenizer=Tokenizer(file=file, vocab_size=size),
        strategy=Choice(name="fedavg"),
    )


class RecipeSite:
    def __init__(self, folder: Path) -> None:
        self.recipe = private_recipe(folder / "tokenizer.json")
        self.tokenizer = folder / "tokenizer.json"
        self.asked: list[str] = []

    def start(self) -> RecipeSite:
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append(self.path)
                if self.path == f"{PLACE}/recipe":
                    self.answer(200, site.recipe.model_dump_json().encode())
                elif self.path == "/api/v1/clock":
                    self.answer(200, json.dumps({"now": time.time()}).encode())
                elif self.path.startswith("/artifacts/"):
                    self.answer(200, site.tokenizer.read_bytes())
                else:
                    self.answer(404, b"{}")

            def do_POST(self):
                site.asked.append(self.path)
                self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(409, json.dumps({"error": "Tiny has finished."}).encode())

            def answer(self, status, data):
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                """Silent."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def joins(self) -> int:
        return self.asked.count(f"{PLACE}/join")

    def seat(self, home: Path) -> Seat:
        """Of a device that is enrolled here."""
        store_device(make_folder(home), self.url, {"token": "t" * 43, "collaboration": SLUG})
        folder = make_folder(site_folder(home, self.url) / SLUG)
        return Seat(self.url, "t" * 43, SLUG, make_folder(home / "files"), folder)
