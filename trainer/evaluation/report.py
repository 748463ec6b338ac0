"""How far an evaluation is, and what its random starts reached, for who watches or goes on."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from trainer.launcher.place import Unusable, write_whole
from trainer.parts import first_problem

TOLD_EVERY_S = 1.0
Scores = dict[str, float]


class Earlier(BaseModel):
    """Of a report, what a later run goes on with. `basis`: see `Report`."""

    basis: str = ""
    starts: dict[int, Scores] = {}


class Report:
    """Lines, at most one a second, and a JSON file that is replaced as it goes.

    `basis` is the SHA-256 of all that a start's scores follow from but its number; `starts` has the
    scores of those that are done, this time or earlier.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.basis = ""
        self.starts: dict[int, Scores] = {}
        self._path, self._at = path, 0.0

    def go_on(self, basis: str) -> None:
        """With what the file has of an earlier run of the same. Raises Unusable, and OSError."""
        self.basis = basis
        if self._path is None or not self._path.exists():
            return
        try:
            found = Earlier.model_validate_json(self._path.read_bytes())
        except ValidationError as error:
            raise Unusable(f"{self._path} is no report: {first_problem(error)}") from error
        if found.basis == basis:
            self.starts = found.starts
        elif found.starts:
            print(
                f"{self._path} was of another model, data or plan: all starts are done anew",
                file=sys.stderr,
            )

    def __call__(self, what: str, share: float) -> None:
        now = time.monotonic()
        if now - self._at >= TOLD_EVERY_S:
            self._at = now
            print(f"{share:4.0%}  {what}", file=sys.stderr, flush=True)
            self._write(what, share)

    def found(self, start: int, scores: Scores, share: float) -> None:
        """Told at once: whatever happens to the next one, this one is done."""
        self.starts[start] = scores
        self._write(f"start {start + 1} is done", share)

    def end(self, result: dict[str, Any]) -> None:
        self._write("", 1.0, complete=True, result=result)

    def _write(self, doing: str, share: float, complete: bool = False, **more: Any) -> None:
        content = {"complete": complete, "doing": doing, "share": share, **more}
        if self._path is not None:
            known = {"basis": self.basis, "starts": self.starts}
            write_whole(self._path, json.dumps(content | known))
