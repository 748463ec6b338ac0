"""One experiment as a program: `python -m trainer simulate`, watched, with limits."""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path

from webapp.core.watched import read_json, run
from webapp.lab.models import Trial
from webapp.lab.services import finish, note_progress

PLAN, RESULT = "experiment.json", "experiment.result.json"
ADVICE = "choose fewer volunteers, rounds, strategies or seeds. What was done until then is kept."


def do(trial: Trial, stopping: threading.Event) -> None:
    """Until it is done, cancelled, over a limit, or `stopping` is set; keeps what came of it."""
    with tempfile.TemporaryDirectory(prefix="lab-") as name:
        folder = Path(name)
        (folder / PLAN).write_text(json.dumps(trial.plan))
        failure = run(
            ["simulate", str(folder / PLAN)],
            folder,
            stopping=stopping,
            is_wanted=lambda: note_progress(trial, read_json(folder / RESULT)),
            advice=ADVICE,
        )
        result = read_json(folder / RESULT)
        is_done = result is not None and result["complete"]
        finish(trial, result, "" if is_done else failure or "It ended without a result.")
