"""Waits on conditions, with a deadline that is a failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any


def wait_for(what: str, ready: Callable[[], Any], timeout_s: float = 20.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := ready():
            return value
        time.sleep(0.02)
    raise AssertionError(f"no {what} within {timeout_s:.0f} s")


async def wait_async(what: str, ready: Callable[[], Any], timeout_s: float = 20.0) -> Any:
    async with asyncio.timeout(timeout_s):
        while not (value := ready()):
            await asyncio.sleep(0.02)
        return value
