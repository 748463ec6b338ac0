"""How much memory this process and those it started hold, and how much is left for more."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

CONTAINER = Path("/sys/fs/cgroup")


def used_bytes() -> int:
    """Of this process: what is resident, also what it shares with others. Quick."""
    return int(_process(os.getpid()).memory_info().rss)


@cache
def _process(pid: int) -> psutil.Process:
    """Made once, which takes longer than to ask it; anew after a fork."""
    return psutil.Process(pid)


def own_bytes() -> int:
    """Of this process, with its part of what it shares. Takes milliseconds."""
    return _proportional(psutil.Process())


def children_bytes() -> int:
    """The same of all processes that this one started, and of those that they started."""
    total = 0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            total += _proportional(child)
    return total


def _proportional(process: psutil.Process) -> int:
    """A page that n processes share counts as 1/n, where the system tells (Linux)."""
    info = process.memory_full_info()
    return int(getattr(info, "pss", 0) or info.rss)


def available_bytes(container: Path = CONTAINER) -> int:
    """What can be had without swapping, by the machine and by the container's limit."""
    free = int(psutil.virtual_memory().available)
    try:
        limit = int((container / "memory.max").read_text())
        used = int((container / "memory.current").read_text())
        counts = dict(line.split() for line in (container / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no container, or one without a limit
        return free
    return min(free, max(0, limit - used + int(counts.get("inactive_file", 0))))


def ran_out(error: BaseException) -> bool:
    """Whether this error of torch (or Python's MemoryError) says that memory ran out."""
    words = str(error).lower()
    refused = "allocat" in words and "memory" in words
    return isinstance(error, MemoryError) or refused or "out of memory" in words
