"""How much memory this process and those it started hold, and how much is left for more."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache

import psutil

from trainer.launcher.container import memory_limits


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


def available_bytes() -> int:
    """What can be had without swapping, by the machine and by its container's limits."""
    free = int(psutil.virtual_memory().available)
    return min([free, *(limit.left_bytes for limit in memory_limits())])


def room_bytes() -> int:
    """What this process may have, with what it has; without what it shares, as programs, which no
    limit need count as its own.
    """
    held = _process(os.getpid()).memory_info()
    return available_bytes() + int(held.rss - getattr(held, "shared", 0))


def give_back() -> None:
    """What this process has freed goes back to the system, where the C library can (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def ran_out(error: BaseException) -> bool:
    """Whether this error of torch (or Python's MemoryError) says that memory ran out."""
    words = str(error).lower()
    refused = "allocat" in words and "memory" in words
    return isinstance(error, MemoryError) or refused or "out of memory" in words
