"""One tokenizer as a program: `python -m trainer tokenizer`, watched, with limits."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from webapp.artifacts.storage import absolute_path
from webapp.core.jobs import fail
from webapp.core.watched import read_json, run
from webapp.tokenizers.models import Making
from webapp.tokenizers.services import finish, note_progress

FILE, REPORT = "tokenizer.json", "report.json"
ADVICE = "choose fewer texts, or a smaller size."


def do(making: Making, stopping: threading.Event) -> None:
    """Until it is done, cancelled, over a limit, or `stopping` is set."""
    with tempfile.TemporaryDirectory(prefix="tokenizer-") as name:
        folder = Path(name)
        if missing := _link_texts(making, folder):
            return fail(
                making, f"{missing} is not on the site's disk any more: choose other texts."
            )
        failure = run(
            _words(making, folder),
            folder,
            stopping=stopping,
            is_wanted=lambda: note_progress(making, read_json(folder / REPORT)),
            advice=ADVICE,
        )
        report = read_json(folder / REPORT)
        if report is not None and report["complete"]:
            return finish(making, folder / FILE, report["made"])
        return fail(making, failure.replace(f"{folder}/", "") or "It ended without a result.")


def _link_texts(making: Making, folder: Path) -> str:
    """Gives them their names, by which they are told apart; that of one that is missing."""
    for number, text in enumerate(making.texts.order_by("pk")):
        file = absolute_path(text.path)
        if not file.is_file():
            return str(text)
        (folder / f"{number}-{text.filename}").symlink_to(file)
    return ""


def _words(making: Making, folder: Path) -> list[str]:
    wanted = making.wanted
    texts = sorted(str(path) for path in folder.iterdir() if path.is_symlink())
    return [
        "tokenizer",
        *texts,
        *("--out", str(folder / FILE)),
        *("--report", str(folder / REPORT)),
        *("--size", str(wanted.size)),
        *("--purpose", wanted.purpose),
        *("--without", ",".join(wanted.without)),
    ]
