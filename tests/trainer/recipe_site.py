"""A site as far as a device asks it before and while it joins; every join is refused."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from tests.answering import Answering
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


class RecipeSite(Answering):
    def __init__(self, folder: Path) -> None:
        self.recipe = private_recipe(folder / "tokenizer.json")
        self.tokenizer = folder / "tokenizer.json"
        self.asked: list[str] = []

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        self.asked.append(path)
        if method == "POST":
            return 409, json.dumps({"error": "Tiny has finished."}).encode()
        if path == f"{PLACE}/recipe":
            return 200, self.recipe.model_dump_json().encode()
        if path == "/api/v1/clock":
            return 200, json.dumps({"now": time.time()}).encode()
        if path.startswith("/artifacts/"):
            return 200, self.tokenizer.read_bytes()
        return 404, b"{}"

    @property
    def joins(self) -> int:
        return self.asked.count(f"{PLACE}/join")

    def seat(self, home: Path) -> Seat:
        """Of a device that is enrolled here."""
        store_device(make_folder(home), self.url, {"token": "t" * 43, "collaboration": SLUG})
        folder = make_folder(site_folder(home, self.url) / SLUG)
        return Seat(self.url, "t" * 43, SLUG, make_folder(home / "files"), folder)
