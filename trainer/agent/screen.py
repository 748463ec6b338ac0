"""A stream that outlives its reader: `| tee log` ends at Ctrl-C, a terminal can be closed."""

from __future__ import annotations

import os
from typing import Any, TextIO


class Screen:
    """Writes to `out` until that fails; from then on everything goes nowhere.

    Its descriptor is pointed at the null device, so that the flush at exit is well too.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        try:
            return self._out.write(text)
        except OSError:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        try:
            self._out.flush()
        except OSError:
            self._give_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def _give_up(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._out.fileno())
        os.close(nowhere)
