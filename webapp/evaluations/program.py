"""One evaluation as a program: `python -m trainer evaluate`, watched, with limits."""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path

from webapp.artifacts.links import Missing, checkpoint_words
from webapp.core.jobs import fail
from webapp.core.watched import read_json, run
from webapp.evaluations.data import place_of
from webapp.evaluations.models import Evaluation, Task
from webapp.evaluations.services import finish, keep_starts, note_progress

REPORT = "report.json"
ADVICE = "go on, as starts that are done count, or choose less data or fewer epochs."


def do(evaluation: Evaluation, stopping: threading.Event) -> None:
    """Until it is done, cancelled, over a limit, or `stopping` is set."""
    with tempfile.TemporaryDirectory(prefix="evaluation-") as name:
        folder = Path(name)
        try:
            words = words_of(evaluation, folder)
        except Missing as missing:
            return fail(evaluation, str(missing))
        failure = run(
            words,
            folder,
            stopping=stopping,
            is_wanted=lambda: note_progress(evaluation, read_json(folder / REPORT)),
            advice=ADVICE,
        )
        report = read_json(folder / REPORT)
        if report is not None:
            keep_starts(evaluation, report)
        if report is not None and report["complete"]:
            return finish(evaluation, report["result"])
        return fail(evaluation, failure.replace(f"{folder}/", "") or "It ended without a result.")


def words_of(evaluation: Evaluation, folder: Path) -> list[str]:
    """What the trainer is asked; puts what it needs into `folder`. Raises Missing."""
    task = evaluation.task
    recipe = task.collaboration.recipe
    checkpoint, how = checkpoint_words(recipe, evaluation.sha256, evaluation.round, folder)
    return [
        *("evaluate", task.kind, checkpoint, *_data(task, folder)),
        *how,
        *("--starts", str(task.starts), "--epochs", str(task.epochs), "--rate", str(task.rate)),
        *("--report", str(_report(evaluation, folder))),
    ]


def _data(task: Task, folder: Path) -> list[str]:
    """Files are under their own name, by which a reader knows the format."""
    if task.dataset:
        return [*f"hub:{task.dataset}".split(), *filter(None, [",".join(task.columns.split())])]
    place = place_of(task)
    if place is None:
        raise Missing(f"The data of {task.title} are not on the site's machine any more.")
    named = folder / "data" / (task.text.filename if task.text else task.file)
    named.parent.mkdir()
    named.symlink_to(place.absolute())
    return [str(named)]


def _report(evaluation: Evaluation, folder: Path) -> Path:
    """With the starts that an earlier program came to."""
    starts = dict(evaluation.starts.values_list("number", "scores"))
    if starts:
        known = {"complete": False, "doing": "", "share": 0.0, "basis": evaluation.basis}
        (folder / REPORT).write_text(json.dumps(known | {"starts": starts}))
    return folder / REPORT
