"""A program of the trainer that computes for a job: watched, within limits, and gone afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings

from webapp.core.processes import follow_parent_into_death, signal_group, without_secrets
from webapp.core.templatetags.ui import byte_size

LOOK_EVERY_S = 0.5
TELL_EVERY_S = 2.0
NICE = 10
END_S = 3.0
OUTPUT = "output.txt"


def run(
    words: Sequence[str],
    folder: Path,
    *,
    stopping: threading.Event,
    is_wanted: Callable[[], bool],
    advice: str,
    secrets: Mapping[str, str] | None = None,
) -> str:
    """`python -m trainer` with `words`, until it ends, is not wanted any more, or passes a limit.

    What it says is in `folder`. `secrets` are in its environment, which no other program sees. Why
    it did not get to its end, in words, with the `advice` where it passed a limit; "" when it did,
    or was not wanted.
    """
    with (folder / OUTPUT).open("wb") as output:
        program = _start(words, folder, output, secrets or {})
        try:
            return _watch(program, folder, stopping, is_wanted, advice)
        finally:
            _end(program)


def _start(
    words: Sequence[str], folder: Path, output: Any, secrets: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    def before() -> None:
        follow_parent_into_death()
        os.nice(NICE)

    return subprocess.Popen(
        [sys.executable, "-m", "trainer", *words],
        cwd=settings.BASE_DIR,
        env={**without_secrets(), "OMP_NUM_THREADS": "1", "TMPDIR": str(folder), **secrets},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=before,
    )


def _watch(
    program: subprocess.Popen[bytes],
    folder: Path,
    stopping: threading.Event,
    is_wanted: Callable[[], bool],
    advice: str,
) -> str:
    began = told_at = time.monotonic()
    while program.poll() is None:
        if stopping.wait(LOOK_EVERY_S):
            return "The site was stopped meanwhile: start it again."
        now = time.monotonic()
        if now - began > 60 * settings.LAB_MINUTES:
            return f"It took more than {settings.LAB_MINUTES} minutes and was ended: {advice}"
        if _memory_bytes(program.pid) > settings.LAB_MEMORY_MB * 10**6:
            limit = byte_size(settings.LAB_MEMORY_MB * 10**6)
            return f"It needed more than {limit} and was ended: {advice}"
        if now - told_at >= TELL_EVERY_S:
            told_at = now
            if not is_wanted():
                return ""
    if program.returncode < 0:
        return _killed(-program.returncode)
    return "" if program.returncode == 0 else f"It ended by itself, and said last: {_last(folder)}"


def _killed(number: int) -> str:
    name = signal.Signals(number).name
    memory = ", as systems do when memory runs out" if number == signal.SIGKILL else ""
    return f"It was killed from outside ({name}{memory}): start it again."


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


def read_json(file: Path) -> dict[str, Any] | None:
    """None while there is none."""
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return found


def _last(folder: Path) -> str:
    """Its last words; what the program itself calls an error is there."""
    lines = (folder / OUTPUT).read_text(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "nothing"
