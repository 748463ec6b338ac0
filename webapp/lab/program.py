"""One experiment as a program: `python -m trainer simulate`, watched, with limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings

from webapp.core.processes import follow_parent_into_death, signal_group
from webapp.core.templatetags.ui import byte_size
from webapp.lab.models import Trial
from webapp.lab.services import finish, note_progress

LOOK_EVERY_S = 0.5
TELL_EVERY_S = 2.0
NICE = 10
END_S = 3.0
PLAN, RESULT, OUTPUT = "experiment.json", "experiment.result.json", "output.txt"


def do(trial: Trial, stopping: threading.Event) -> None:
    """Until it is done, cancelled, over a limit, or `stopping` is set; keeps what came of it."""
    with tempfile.TemporaryDirectory(prefix="lab-") as name:
        folder = Path(name)
        (folder / PLAN).write_text(json.dumps(trial.plan))
        with (folder / OUTPUT).open("wb") as output:
            program = _start(folder, output)
            try:
                failure = _watch(program, trial, folder, stopping)
            finally:
                _end(program)
        finish(trial, _read(folder / RESULT), failure)


def _start(folder: Path, output: Any) -> subprocess.Popen[bytes]:
    def before() -> None:
        follow_parent_into_death()
        os.nice(NICE)

    return subprocess.Popen(
        [sys.executable, "-m", "trainer", "simulate", str(folder / PLAN)],
        cwd=settings.BASE_DIR,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=before,
    )


def _watch(
    program: subprocess.Popen[bytes], trial: Trial, folder: Path, stopping: threading.Event
) -> str:
    """Why it did not get to its end, in words; "" when it did, or was cancelled."""
    began = told_at = time.monotonic()
    while program.poll() is None:
        if stopping.wait(LOOK_EVERY_S):
            return "The site was stopped meanwhile: start it again."
        now = time.monotonic()
        if now - began > 60 * settings.LAB_MINUTES:
            return _too_much(f"took more than {settings.LAB_MINUTES} minutes")
        used = _memory_bytes(program.pid)
        if used > settings.LAB_MEMORY_MB * 10**6:
            return _too_much(f"needed more than {byte_size(settings.LAB_MEMORY_MB * 10**6)}")
        if now - told_at >= TELL_EVERY_S:
            told_at = now
            if not note_progress(trial, _read(folder / RESULT)):
                return ""
    return "" if program.returncode in (0, 1) and _is_complete(folder) else _last_words(folder)


def _too_much(what: str) -> str:
    return (
        f"It {what} and was ended: choose fewer volunteers, rounds, strategies or seeds. "
        "What was done until then is kept."
    )


def _memory_bytes(pid: int) -> int:
    """Of it and of what it started."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        program = psutil.Process(pid)
        for process in (program, *program.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
    return total


def _end(program: subprocess.Popen[bytes]) -> None:
    """It and all that it started."""
    signal_group(program.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        program.wait(END_S)
    signal_group(program.pid, signal.SIGKILL)
    program.wait()


def _read(file: Path) -> dict[str, Any] | None:
    """None while there is none."""
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return found


def _is_complete(folder: Path) -> bool:
    result = _read(folder / RESULT)
    return result is not None and bool(result["complete"])


def _last_words(folder: Path) -> str:
    lines = (folder / OUTPUT).read_text(errors="replace").strip().splitlines()
    return f"It ended by itself, and said last: {lines[-1][:200] if lines else 'nothing'}"
