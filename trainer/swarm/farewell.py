"""An averaging process that is shut down in the middle of an average breaks it off, and ends.

Guards against hivemind 1.1.12, whose shutdown fails then: it takes the futures of its running
groups for the groups.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Farewell:
    """The part of the averager that ends it."""

    client_mode: bool
    prefix: str
    _p2p: Any
    _running_groups: dict[bytes, asyncio.Future[Any]]

    async def _shutdown(self, timeout: float | None) -> None:
        if not self.client_mode:
            await self.remove_p2p_handlers(self._p2p, namespace=self.prefix)  # type: ignore[attr-defined]
        for group in list(self._running_groups.values()):
            if group.done() and not group.cancelled() and group.exception() is None:
                group.result().finalize(cancel=True)
            else:
                group.cancel()
