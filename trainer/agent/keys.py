"""Single keys of the terminal, without Enter; afterwards the terminal is as it was found.

Ctrl-C stays a signal. While the agent is in the background (Ctrl-Z and `bg`, or `&`) the terminal
is the shell's: reading or changing it would stop the agent.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import tty
from collections.abc import Callable
from contextlib import suppress
from typing import Any

LOOK_S = 0.5


def terminal() -> int | None:
    """The descriptor of the terminal that controls this process, if its keys come in here."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    with suppress(OSError):  # a terminal, but of somebody else
        os.tcgetpgrp(sys.stdin.fileno())
        return sys.stdin.fileno()
    return None


class Keys:
    """Calls `pressed` with each key, on a thread of its own, until `close`."""

    def __init__(self, descriptor: int, pressed: Callable[[str], None]) -> None:
        self._descriptor, self._pressed = descriptor, pressed
        self._found: list[Any] | None = None
        self._lock = threading.RLock()  # a signal handler may close what is just being closed
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keys", daemon=True)

    def open(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Gives the terminal back; any thread and any signal handler may, more than once."""
        with self._lock:
            self._ended.set()
            if self._found and self._is_ours():
                with suppress(termios.error):  # it was closed
                    termios.tcsetattr(self._descriptor, termios.TCSANOW, self._found)
                self._found = None

    def wait(self) -> None:
        """After `close`: until the last key is dealt with."""
        self._thread.join(2 * LOOK_S)

    def _is_ours(self) -> bool:
        with suppress(OSError):
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        return False

    def _take(self) -> bool:
        """Whether keys come in one by one; asked again and again, because a shell resets that."""
        with self._lock:
            if self._ended.is_set() or not self._is_ours():
                return False
            modes = termios.tcgetattr(self._descriptor)
            if modes[3] & termios.ICANON:
                self._found = self._found or modes
                tty.setcbreak(self._descriptor, termios.TCSANOW)
            return True

    def _run(self) -> None:
        with suppress(OSError, termios.error):  # the terminal is gone: SIGHUP says so, too
            while not self._ended.is_set():
                if not self._take():
                    self._ended.wait(LOOK_S)
                elif select.select([self._descriptor], [], [], LOOK_S)[0] and self._is_ours():
                    typed = os.read(self._descriptor, 64)
                    if not typed:
                        return
                    for key in typed.decode(errors="ignore"):
                        self._pressed(key)
