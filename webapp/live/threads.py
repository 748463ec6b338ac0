"""Database work from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from channels.db import database_sync_to_async

T = TypeVar("T")


async def in_thread(
    function: Callable[..., T],
    *args: Any,
    executor: ThreadPoolExecutor | None = None,
    **kwargs: Any,
) -> T:
    """Runs `function` on `executor`, by default on the process's one thread for reads.

    asgiref lets the thread finish and forgets that the task was cancelled meanwhile: an endless
    loop would then never stop, and neither would the server. Hence the second look.
    """
    run = database_sync_to_async(function, thread_sensitive=executor is None, executor=executor)
    answer = await run(*args, **kwargs)
    end_if_cancelled()
    return answer


def end_if_cancelled() -> None:
    """Raises CancelledError in a task that was cancelled inside a library which forgot it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
