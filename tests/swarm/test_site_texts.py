"""Volunteers' own texts with a real site: what they learn goes round, and what they wrote does not.

After `test_site_swarm.py`, on the same site.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

from tests.waiting import wait_for
from trainer.text.tokenizer import Tokenizer

pytestmark = pytest.mark.swarm

CANARY = "quokkamundo zephyrinax vexillowort"
PLACE, FILE = "plovercabinetto", "marmosetdiarium"
OPEN_NOTES = """
from trainer.recipe import Choice, Recipe, Round, Text
from webapp.collaborations import services
from webapp.collaborations.models import Collaboration
shape = {"hidden": 32, "layers": 1, "heads": 2, "length": 32}
timing = Round(target_samples=32, deadline_s=20, matchmaking_s=2, averaging_s=30)
changed = {"collaboration": "notes", "texts": (Text(kind="private"),), "held_out": None,
    "family": Choice(name="causal", params=shape), "sequence_length": 32, "micro_batch": 4,
    "strategy": Choice(name="fedavg"), "round": timing}
recipe = Collaboration.objects.get(slug="demo").recipe.model_copy(update=changed)
recipe = Recipe.model_validate(recipe.model_dump())
notes = services.create(title="Notes", recipe=recipe, by=None)
services.open_(notes, by=None)
"""

FINISH_NOTES = """
from webapp.collaborations import services
from webapp.collaborations.models import Collaboration
services.finish(Collaboration.objects.get(slug="notes"), by=None)
"""


def write_notes(folder: Path) -> Path:
    folder = folder / PLACE
    folder.mkdir(parents=True)
    lines = [f"{CANARY} on day {number}" for number in range(200)]
    (folder / f"{FILE}.txt").write_text("\n".join(lines[::2]))
    rows = [json.dumps({"instruction": line, "output": CANARY}) + "\n" for line in lines[1::2]]
    (folder / f"{FILE}.jsonl").write_text("".join(rows))
    return folder


def traces(tokenizer: Path) -> dict[str, bytes]:
    """All that would give a text, its place or its tokens away, as bytes."""
    ids = Tokenizer(tokenizer, 4096).encode(f"{CANARY} on day 1")[:6]
    forms = {name: numpy.array(ids, dtype=name).tobytes() for name in ("<u2", "<i4", "<i8", "<f4")}
    texts = {text: text.encode() for text in (*CANARY.split(), PLACE, FILE)}
    lists = {space: f",{space}".join(map(str, ids)).encode() for space in ("", " ")}
    return {**forms, **texts, **lists}


def found_in(folder: Path, sought: dict[str, bytes]) -> list[tuple[str, str]]:
    return [
        (str(path), name)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for name, content in sought.items()
        if content in path.read_bytes()
    ]


def of_kind(folder: Path, kind: str) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob(f"{kind}-*"))


def test_nothing_of_a_volunteers_texts_reaches_the_site_or_another_peer(site, monkeypatch):
    """With one agent that trains, and one that crashes over a text, in a round with it."""
    site.manage("shell", "-v", "0", "-c", OPEN_NOTES)
    agents, recorded = {}, {}
    for name, crash in (("nele", "0"), ("olaf", "100")):
        recorded[name] = site.folder / "recorded" / name
        monkeypatch.setitem(site.env, "RECORDED", str(recorded[name]))
        monkeypatch.setitem(site.env, "CRASH", crash)
        data = str(write_notes(site.folder / "disks" / name))
        agents[name] = site.agent_at(
            site.url, name, "tests.swarm.recording", slug="notes", texts=data
        )
    assert agents["olaf"].wait(240) == 1
    wait_for("credit", lambda: [row[2] > 1 for row in site.sessions_of("nele")] == [True])
    site.manage("shell", "-v", "0", "-c", FINISH_NOTES)
    assert agents["nele"].wait(90) == 0

    assert all("What does not: the texts" in site.said(name) for name in agents)
    assert "learned alone: " in site.said("nele").split("your own texts: loss")[1]
    (own,) = site.folder.rglob("own-model.safetensors")
    assert own.is_relative_to(site.folder / "nele") and str(own) in site.said("nele")
    assert site.rows("select count(*) from credit_receipt where own_loss is not null") == [(0,)]
    (tokenizer,) = (site.folder / "nele" / "files").glob("*/tokenizer.json")
    sought = traces(tokenizer)
    assert len(found_in(site.folder / "disks", sought)) >= 8  # it is found where it is
    assert found_in(site.data, sought) == []
    assert found_in(site.folder / "recorded", sought) == []
    assert not any(content in site.log.read_bytes() for content in sought.values())

    cause, reason, _ = site.sessions_of("olaf")[0]
    assert (cause, reason) == (
        "failed",
        "the engine stopped: ValueError; the log on the device says more",
    )
    (log,) = (site.folder / "olaf" / "logs").glob("notes.log")
    assert PLACE in log.read_text()  # which is its owner's
    for folder in recorded.values():  # and it did look where things go
        assert b"/recipe" in of_kind(folder, "http") and b"peer_key" in of_kind(folder, "http")
        assert b'"kind":"receipt"' in of_kind(folder, "websocket")
        assert len(of_kind(folder, "average")) > 100_000
        assert len(of_kind(folder, "stream")) > len(of_kind(folder, "average")) // 4
    assert site.get("collaborations/notes")["state"] == "finished"
