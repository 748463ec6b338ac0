"""Waits on conditions, with a deadline that is a failure, far beyond what a busy machine needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

WITHIN_S = 240.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.1


def wait_for(what: str, ready: Callable[[], Any], timeout_s: float = WITHIN_S) -> Any:
    """The first true value of `ready`, or a failure that says what was waited for.

    What takes long is asked less often, because asking may cost something.
    """
    deadline = time.monotonic() + timeout_s
    pause_s = FIRST_PAUSE_S
    while not (value := ready()):
        assert time.monotonic() < deadline, f"no {what} within {timeout_s:.0f} s"
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.2, LONGEST_PAUSE_S)
    return value
