"""One coordinator process of one collaboration: started, watched, stopped, never lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings

from webapp.core.processes import follow_parent_into_death, signal_group, without_secrets

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
HEALTHY_AFTER_S = 30.0
STOP_S = 16.0  # less than what `up` gives the coordinators
CONFIG, PID = "config.json", "pid"


class Child:
    """`folder` keeps its identity, configuration (with the token: mode 0600) and checkpoints."""

    def __init__(self, slug: str, folder: Path) -> None:
        self.slug = slug
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._delay = FIRST_DELAY_S
        self._began = 0.0
        self._not_before = 0.0
        self._stop_by: float | None = None
        self._was_asked = False

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def may_start(self) -> bool:
        return self._process is None and time.monotonic() >= self._not_before

    def start(self, config: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / CONFIG
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
        self._began, self._stop_by, self._was_asked = time.monotonic(), None, False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "trainer", "coordinate", "--config", str(path)],
            cwd=settings.BASE_DIR,
            env=without_secrets(),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=follow_parent_into_death,
        )
        (self.folder / PID).write_text(str(self._process.pid))

    def reap(self) -> int | None:
        """The exit code, once, when it has ended; then it may start again after a delay."""
        if self._process is None or self._process.poll() is None:
            return None
        code, pid = self._process.returncode, self._process.pid
        signal_group(pid, signal.SIGKILL)
        (self.folder / PID).unlink(missing_ok=True)
        lived = time.monotonic() - self._began
        healthy = lived > HEALTHY_AFTER_S
        self._delay = FIRST_DELAY_S if healthy else min(2 * self._delay, LONGEST_DELAY_S)
        self._not_before = time.monotonic() + self._delay
        self._process = None
        return code

    def ask_to_stop(self, *, grace_s: float = 0.0) -> None:
        """SIGTERM after `grace_s` seconds (it may end by itself before), SIGKILL 16 s later.

        To be called again and again until it has ended. A second SIGTERM would cut its end short.
        """
        if self._process is None:
            return
        now = time.monotonic()
        if self._stop_by is None:
            self._stop_by = now + grace_s + STOP_S
        if now >= self._stop_by:
            signal_group(self._process.pid, signal.SIGKILL)
        elif now >= self._stop_by - STOP_S and not self._was_asked:
            self._was_asked = True
            self._process.terminate()


def end_leftover(folder: Path) -> bool:
    """Ends the process that a killed supervisor left in `folder`; True when there was one.

    The number in the pid file may have gone to another program since, so its command is checked.
    """
    try:
        process = psutil.Process(int((folder / PID).read_text()))
        if str(folder / CONFIG) not in process.cmdline():
            return False
        if sys.platform != "linux":  # there it was told when its parent died
            process.terminate()
        try:
            process.wait(STOP_S)
        except psutil.TimeoutExpired:
            signal_group(process.pid, signal.SIGKILL)
        return True
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return False
    finally:
        (folder / PID).unlink(missing_ok=True)
