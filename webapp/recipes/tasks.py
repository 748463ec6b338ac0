"""What the checkpoints of a ready recipe are evaluated with."""

from __future__ import annotations

from webapp.accounts.models import User
from webapp.artifacts.models import Artifact
from webapp.collaborations.models import Collaboration
from webapp.core.errors import UserError
from webapp.evaluations import data, services
from webapp.evaluations.models import Baseline, Task
from webapp.recipes import corpora
from webapp.recipes.corpora.base import Example, write_examples
from webapp.recipes.ready import Ready

HELD_OUT = "held-out"
Labelled = dict[str, list[Example]]


def labelled_of(ready: Ready) -> Labelled:
    """The data of its tasks that are in packages. Raises UserError when one is not installed."""
    known = corpora.labelled()
    return {task.data: known[task.data]() for task in ready.tasks if task.data in known}


def write(labelled: Labelled) -> None:
    """Into the site's folder for such data, where they are not yet."""
    for name, examples in labelled.items():
        path = data.folder() / _filename(name)
        if not path.exists():
            write_examples(examples, path)


def enter(
    ready: Ready, collaboration: Collaboration, held_out: Artifact | None, *, by: User
) -> None:
    """With their baselines. Raises UserError."""
    for wanted in ready.tasks:
        is_text = wanted.data == HELD_OUT
        if is_text and held_out is None:
            raise UserError(f"{wanted.title}: no text is held out. Name other data for it.")
        task = Task(
            collaboration=collaboration,
            text=held_out if is_text else None,
            file="" if is_text else _filename(wanted.data),
            **wanted.model_dump(exclude={"data", "baselines"}),
        )
        services.enter(task, by=by)
        for baseline in wanted.baselines:
            services.enter_baseline(Baseline(task=task, **baseline.model_dump()), by=by)


def missing(collaboration: Collaboration) -> list[tuple[str, str]]:
    """Titles of its tasks whose data are not there, and where they belong."""
    return [
        (task.title, str(data.folder() / task.file))
        for task in collaboration.evaluation_tasks.all()
        if not task.dataset and data.place_of(task) is None
    ]


def _filename(name: str) -> str:
    """Of packages' data; others are a file or folder of that very name."""
    return f"{name}.jsonl" if name in corpora.labelled() else name
