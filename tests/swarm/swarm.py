"""A small swarm of real processes on loopback, with an authority that signs its passports."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import psutil

from tests.ports import free_port
from tests.swarm.nursery import Child
from tests.waiting import wait_for
from trainer.passport import Claims, make_authority, public_text, sign
from trainer.recipe import Choice, File, Optimizer, Recipe, Round, Text, Tokenizer
from trainer.swarm.identity import FILENAME, load_or_make
from trainer.text.tokenizer import train_tokenizer
from trainer.wire import Control, Wish

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = [
    "the cat sat on the mat and looked at the moon",
    "a small boat went down the river to the sea",
    "she bakes bread with flour, water, salt and time",
    "the old clock in the hall strikes twelve at noon",
]


class Member:
    """One started peer and what it has said."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.peer_id = load_or_make(folder / FILENAME).peer_id
        self.program = "tests.swarm.member"
        self.process: Child | None = None

    def start(self, *words: str) -> None:
        """Also again, after it has ended; an old wish is gone then."""
        (self.folder / "wish.json").unlink(missing_ok=True)
        self.process = Child(self.program, [str(self.folder), *words], self.folder / "log")

    def said(self, kind: str) -> list[dict[str, Any]]:
        return [found["body"] for found in self.said_at(kind)]

    def said_at(self, kind: str) -> list[dict[str, Any]]:
        """Everything of one kind, as {"at": device time, "kind", "body"}."""
        try:
            lines = (self.folder / "said.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [found for line in lines if (found := json.loads(line))["kind"] == kind]

    def rounds(self) -> list[dict[str, Any]]:
        """Verdicts of the rounds it applied."""
        receipts = [r["verdict"] for r in self.said("receipt") if r["accepted"]]
        return receipts + [r["verdict"] for r in self.said("round")]

    @property
    def round(self) -> int:
        """The newest round it reported as applied; -1 before the first."""
        return max((verdict["round"] for verdict in self.rounds()), default=-1)

    def activity(self) -> str:
        progress = self.said("progress")
        return progress[-1]["activity"] if progress else ""

    def wish(self, wish: Wish, reason: str = "") -> None:
        draft = self.folder / "wish.new"
        draft.write_text(Control(wish=wish, reason=reason).model_dump_json())
        draft.replace(self.folder / "wish.json")

    def tree(self) -> list[psutil.Process]:
        assert self.process is not None
        try:
            me = psutil.Process(self.process.pid)
            return [me, *me.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """kill -9 of the main process alone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self, timeout_s: float = 60.0) -> str:
        """A clean leave; what it said is its cause."""
        assert self.process is not None
        self.wish(Wish.STOP)
        self.process.wait(timeout=timeout_s)
        return self.said("left")[-1]["cause"]

    def log(self) -> str:
        return (self.folder / "log").read_text()


def history_of(*members: Member) -> dict[int, dict[str, Any]]:
    """The verdicts of the rounds that any of them applied, by number.

    They have to agree, and none may be missing: who was late for one takes it from the others.
    """
    by_round: dict[int, dict[str, Any]] = {}
    for member in members:
        for verdict in member.rounds():
            known = by_round.setdefault(verdict["round"], verdict)
            for figure in ("members", "samples", "tokens", "loss"):
                assert verdict[figure] == known[figure]
    assert sorted(by_round) == list(range(min(by_round), max(by_round) + 1))
    return by_round


def refusals_of(*members: Member) -> list[str]:
    """Why offers of theirs were not taken; being late, as anybody may be, is no refusal."""
    receipts = [receipt for member in members for receipt in member.said("receipt")]
    reasons = [receipt["reason"] for receipt in receipts if not receipt["accepted"]]
    return [reason for reason in reasons if "went on to round" not in reason]


class Swarm:
    def __init__(
        self, folder: Path, big: bool = False, pause_s: float = 0.0, **round_options: Any
    ) -> None:
        """`big`: a model whose average takes a second or more. `pause_s`: rest of every member
        before each micro-batch, so that several leave the machine time for other tests."""
        self.folder, self.pause_s = folder, pause_s
        self.members: dict[str, Member] = {}
        self.base: Path | None = None  # the folder of what the recipe begins with
        self.port = free_port()
        self.authority = make_authority(folder / "authority.pem")
        self.text, self.tokenizer = folder / "text.txt", folder / "tokenizer.json"
        self.text.write_text("\n".join(SENTENCES * 50) + "\n")
        train_tokenizer(SENTENCES, self.tokenizer, 320)
        self.recipe = self._recipe(1024 if big else 64, round_options)

    def _recipe(self, hidden: int, round_options: dict[str, Any]) -> Recipe:
        options = {"target_samples": 1200, "matchmaking_s": 2, "averaging_s": 30, "deadline_s": 20}
        text = Text(kind="site", file=_file(self.text))
        return Recipe(
            collaboration="loopback",
            family=Choice(
                name="albert",
                params={"hidden": hidden, "layers": 2, "heads": 2, "embedding": 32, "length": 64},
            ),
            strategy=Choice(name="dedloc"),
            tokenizer=Tokenizer(file=_file(self.tokenizer), vocab_size=320),
            texts=(text,),
            held_out=text,
            sequence_length=32,
            micro_batch=8,
            optimizer=Optimizer(learning_rate=5e-3, warmup_rounds=2, schedule="constant"),
            round=Round(**{"checkpoint_every": 5, **options, **round_options}),
        )

    def add(self, name: str, role: str = "peer", **changes: Any) -> Member:
        """Starts a member with a valid passport; `changes` overwrite parts of its job."""
        member = self.prepare(name, role, **changes)
        member.start()
        return member

    def prepare(self, name: str, role: str = "peer", **changes: Any) -> Member:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        member = self.members[name] = Member(name, folder)
        key = load_or_make(folder / FILENAME).public_text
        claims = Claims(
            user=name,
            device=name,
            peer_key=key,
            collaboration=self.recipe.collaboration,
            expires_at=time.time() + 3600,
        )
        job = {
            "recipe": self.recipe.model_dump(mode="json"),
            "role": role,
            "tokenizer": str(self.tokenizer),
            "text": str(self.text),
            "held_out": str(self.text) if role == "coordinator" else None,
            "base": str(self.base) if self.base else None,
            "passport": sign(claims, self.authority).model_dump(),
            "authority": public_text(self.authority),
            "bootstrap": [] if role == "coordinator" else [self.address],
            "listen_address": f"/ip4/127.0.0.1/tcp/{self.port if role == 'coordinator' else 0}",
        }
        lies = {"slow": self.pause_s, **changes.pop("lies", {})}
        (folder / "job.json").write_text(json.dumps({**job, "lies": lies, **changes}))
        return member

    def open(self) -> Member:
        """Starts the coordinator and waits until newcomers can find it."""
        member = self.add("coordinator", role="coordinator")
        wait_for("open swarm", lambda: member.said("swarm_opened"))
        return member

    @property
    def address(self) -> str:
        name = self.members["coordinator"].peer_id
        return f"/ip4/127.0.0.1/tcp/{self.port}/p2p/{name}"

    def close(self) -> None:
        """Ends whatever still runs, by process id."""
        trees = [p for m in self.members.values() if m.process for p in m.tree()]
        for process in trees:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(trees, timeout=60)


def _file(path: Path) -> File:
    content = path.read_bytes()
    return File(
        sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content), filename=path.name
    )
