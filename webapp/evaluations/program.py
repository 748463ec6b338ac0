"""One evaluation as a program: `python -m trainer evaluate`, watched, with limits."""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path

from trainer.recipe import Base, Recipe
from webapp.artifacts.models import Artifact
from webapp.artifacts.storage import absolute_path
from webapp.core.jobs import fail
from webapp.core.watched import read_json, run
from webapp.evaluations.data import place_of
from webapp.evaluations.models import Evaluation, Task
from webapp.evaluations.services import finish, keep_starts, note_progress

REPORT, DONE = "report.json", "done.json"
ADVICE = "go on, as starts that are done count, or choose less data or fewer epochs."


class Missing(Exception):
    """Something that it needs and the site does not have; says what."""


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
    (folder / "recipe.json").write_text(recipe.model_dump_json())
    checkpoint = _linked(evaluation.sha256, folder / f"round-{evaluation.round}.safetensors")
    tokenizer = _linked(recipe.tokenizer.file.sha256, folder / "tokenizer.json")
    return [
        *("evaluate", task.kind, str(checkpoint), str(_data(task, folder))),
        *("--recipe", str(folder / "recipe.json"), "--tokenizer", str(tokenizer)),
        *("--starts", str(task.starts), "--epochs", str(task.epochs), "--rate", str(task.rate)),
        *("--report", str(folder / REPORT)),
        *_done(evaluation, folder),
        *_base(recipe, folder),
    ]


def _data(task: Task, folder: Path) -> Path:
    """Under their own name, by which a reader knows the format."""
    place = place_of(task)
    if place is None:
        raise Missing(f"The data of {task.title} are not on the site's machine any more.")
    link = folder / "data" / (task.text.filename if task.text else task.file)
    link.parent.mkdir()
    link.symlink_to(place.absolute())
    return link


def _done(evaluation: Evaluation, folder: Path) -> list[str]:
    """Starts that an earlier program came to."""
    starts = dict(evaluation.starts.values_list("number", "scores"))
    if not starts:
        return []
    (folder / DONE).write_text(json.dumps({"basis": evaluation.basis, "starts": starts}))
    return ["--done", str(folder / DONE)]


def _base(recipe: Recipe, folder: Path) -> list[str]:
    base: Base | None = recipe.base
    if base is None:
        return []
    if base.kind == "local":
        return ["--base", base.place]
    if base.kind != "site":
        raise Missing("The base is not the site's own: add it to the site with manage.py add_base.")
    (folder / "base").mkdir()
    for file in base.files:
        _linked(file.sha256, folder / "base" / file.filename)
    return ["--base", str(folder / "base")]


def _linked(sha256: str, link: Path) -> Path:
    """A file of the site under another name."""
    artifact = Artifact.objects.filter(sha256=sha256).first()
    file = absolute_path(artifact.path) if artifact else None
    if file is None or not file.is_file():
        raise Missing(f"{link.name} ({sha256[:12]}…) is not among the site's files any more.")
    link.symlink_to(file)
    return link
