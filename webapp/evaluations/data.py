"""Where a task's data are: a text of the site, or something in one folder of the site's machine.

No other path can be named: what is wrong with a file is told with its words, and an organiser is
not to read the machine's files by that.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.selectors import texts
from webapp.artifacts.storage import absolute_path
from webapp.evaluations.models import Task

TEXT, FILE = "text:", "file:"


def folder() -> Path:
    return Path(settings.DATA_DIR) / "evaluation"


def choices() -> list[tuple[str, str]]:
    try:
        names = sorted(one.name for one in folder().iterdir() if one.name[0] != ".")
    except OSError:
        names = []
    return [
        *((FILE + name, name) for name in names),
        *((f"{TEXT}{text.pk}", f"{text} (a text of the site)") for text in texts()),
    ]


def chosen(value: str) -> tuple[Artifact | None, str]:
    """Of a choice: the text, or the name."""
    if value.startswith(TEXT):
        return Artifact.objects.get(pk=value.removeprefix(TEXT), kind=Kind.TEXT), ""
    return None, value.removeprefix(FILE)


def place_of(task: Task) -> Path | None:
    """None where there is nothing any more."""
    if task.text is not None:
        path = absolute_path(task.text.path)
    elif task.file and Path(task.file).name == task.file:
        path = folder() / task.file
    else:
        return None
    return path if path.exists() else None
