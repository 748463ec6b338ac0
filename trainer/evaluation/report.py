"""How far an evaluation is, and what its random starts reached, for who watches or goes on."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from pydantic import BaseModel, ValidationError

from trainer.launcher.place import Unusable, replace_whole
from trainer.parts import first_problem

TOLD_EVERY_S = 1.0
MAX_REPORT_BYTES = 16 * 2**20
Scores = dict[str, float]


class Earlier(BaseModel):
    """What makes a file a report, and what a later run goes on with. `basis`: see `Report`."""

    complete: bool
    doing: str
    share: float
    basis: str = ""
    starts: dict[int, Scores] = {}


class Report:
    """Lines, at most one a second, and a JSON file that is replaced as it goes.

    `basis` is the SHA-256 of all that a start's scores follow from but its number; `starts` has the
    scores of those that are done, this time or earlier.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Raises Unusable where the file is something else, or could not be written."""
        self._earlier = None if path is None else _earlier(path)
        self.basis = ""
        self.starts: dict[int, Scores] = {}
        self._path, self._at = path, 0.0

    def go_on(self, basis: str) -> None:
        """With what the file has of an earlier run of the same."""
        self.basis, found = basis, self._earlier
        if found is None:
            return
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
            try:
                replace_whole(self._path, json.dumps(content | known))
            except OSError as error:
                raise _unwritable(self._path, error) from error


def _earlier(path: Path) -> Earlier | None:
    """What the file has, if there is one. Raises Unusable."""
    try:
        with TemporaryFile(dir=path.parent):
            pass  # a report can be written beside it, and take its place
        if not path.exists():
            return None
        if not path.is_file():  # a pipe would keep its reader waiting for good
            raise Unusable(f"{path} is no report, and no ordinary file")
        with path.open("rb") as file:
            return Earlier.model_validate_json(file.read(MAX_REPORT_BYTES))
    except ValidationError as error:
        raise Unusable(
            f"{path} is no report: {first_problem(error)}. It stays as it is: name another file"
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> Unusable:
    return Unusable(f"No report can be written to {path}: {error.strerror or error}")
