"""Several calls at the same moment, each on a thread with a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

T = TypeVar("T")


def alone(act: Callable[[], T]) -> T:
    """On a thread that ends with it: its connection is closed."""
    try:
        return act()
    finally:
        connection.close()


def at_once(*acts: Callable[[], T]) -> list[T]:
    """Their results in order, once all have ended. Raises what the first of them raised."""
    ready = threading.Barrier(len(acts))

    def run(act: Callable[[], T]) -> T:
        ready.wait()
        return alone(act)

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))
