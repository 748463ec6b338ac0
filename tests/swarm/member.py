"""One peer as a process of its own: `python -m tests.swarm.member FOLDER`.

Reads `job.json` once and `wish.json` all the time; writes what it reports to `said.jsonl`.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from pathlib import Path

from tests.swarm import lies
from trainer.engine.job import Job
from trainer.engine.peer import take_part
from trainer.passport import Passport, RevocationList
from trainer.recipe import Recipe
from trainer.swarm.orphans import ProcessEnded
from trainer.wire import Body, Control, Progress, Role, Wish


class FileOutbox:
    def __init__(self, path: Path) -> None:
        self._file, self._lock = path.open("a", buffering=1), threading.Lock()

    def _write(self, kind: str, content: str) -> None:
        with self._lock:
            line = json.dumps({"at": time.time(), "kind": kind, "body": json.loads(content)})
            self._file.write(line + "\n")

    def progress(self, message: Progress) -> None:
        self._write("progress", message.model_dump_json())

    def report(self, body: Body) -> None:
        self._write(body.kind, body.model_dump_json())

    def left(self, cause: str) -> None:
        self._write("left", json.dumps({"cause": cause}))


class FileWishes:
    def __init__(self, path: Path) -> None:
        self._path = path

    def current(self) -> Control:
        try:
            return Control.model_validate_json(self._path.read_text())
        except (OSError, ValueError):
            return Control(wish=Wish.RUN)


def revocations_in(folder: Path) -> RevocationList | None:
    """What a test has put there for the coordinator to pass on."""
    try:
        return RevocationList.model_validate_json((folder / "revocations.json").read_text())
    except (OSError, ValueError):
        return None


def job_in(folder: Path) -> Job:
    """What `Swarm.add` has written."""
    given = json.loads((folder / "job.json").read_text())
    passport = Passport.model_validate(given["passport"])
    return Job(
        recipe=Recipe.model_validate(given["recipe"]),
        role=Role(given["role"]),
        folder=folder,
        tokenizer=Path(given["tokenizer"]),
        texts=(Path(given["text"]),),
        held_out=Path(given["held_out"]) if given.get("held_out") else None,
        checkpoint=Path(given["checkpoint"]) if given.get("checkpoint") else None,
        passport=lambda: passport,
        authority=given["authority"],
        bootstrap=tuple(given["bootstrap"]),
        num_processes=given.get("num_processes", 1),
        split=given.get("split", "optimizer"),
        clock_offset_s=given.get("clock_offset_s", 0.0),
        listen_address=given["listen_address"],
        checkpoint_folder=folder / "checkpoints",
        revocations=lambda: revocations_in(folder),
        base=Path(given["base"]) if given.get("base") else None,
    )


def main(folder: Path) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    lies.tell(json.loads((folder / "job.json").read_text()).get("lies", {}))
    job = job_in(folder)
    outbox = FileOutbox(folder / "said.jsonl")
    try:
        outbox.left(take_part(job, outbox, FileWishes(folder / "wish.json")).value)
    except ProcessEnded as ended:
        outbox.left(f"restarting: {ended}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
