"""A person at a real terminal (a pty), in front of a program that it controls."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
from pathlib import Path

from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
# A session's first process that opens a terminal is controlled by it.
TAKE_TERMINAL = "import os\nos.open(os.ttyname(0), os.O_RDWR)\n"


class Terminal:
    def __init__(self) -> None:
        self._keyboard, self._inside = pty.openpty()
        self.found = self.modes
        self.shown, self._read = "", 0

    @property
    def modes(self) -> list[object]:
        return termios.tcgetattr(self._inside)

    @property
    def takes_lines(self) -> bool:
        """As a shell leaves it: with Enter after each line."""
        return bool(self.modes[3] & termios.ICANON)

    def start(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL + program, *words],
            cwd=ROOT, stdin=self._inside, stdout=self._inside, stderr=self._inside,
            start_new_session=True, env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
        )  # fmt: skip
        return self.process

    def type(self, keys: str) -> None:
        os.write(self._keyboard, keys.encode())

    def look(self) -> str:
        """All that was shown since it was switched on."""
        while select.select([self._keyboard], [], [], 0)[0]:
            self.shown += os.read(self._keyboard, 65536).decode(errors="replace")
        return self.shown

    def until(self, words: str) -> None:
        """Shown after what was waited for before."""
        wait_for(words, lambda: words in self.look()[self._read :])
        self._read = self.shown.index(words, self._read) + len(words)

    def end(self) -> int:
        """The program's exit code; its last words are read, so that it never waits for a reader."""
        wait_for("end", lambda: (self.look(), self.process.poll())[1] is not None)
        self.look()
        return self.process.returncode

    def switch_off(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._keyboard)
        os.close(self._inside)
