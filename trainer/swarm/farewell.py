"""An average that is let go of, or whose process is shut down in its middle, ends in order.

Guards against hivemind 1.1.12: its shutdown takes the futures of its running groups for the groups
and fails; and the end of an average whose step was cancelled is an error that nobody looks at.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import InvalidStateError
from typing import Any

from hivemind.averaging.control import StepControl


class Farewell:
    """The part of the averager that ends it."""

    client_mode: bool
    prefix: str
    _p2p: Any
    _running_groups: dict[bytes, asyncio.Future[Any]]

    async def _step(self, *, step: StepControl, **options: Any) -> None:
        try:
            await super()._step(step=step, **options)  # type: ignore[misc]
        except InvalidStateError:
            if not step.cancelled():
                raise

    async def _shutdown(self, timeout: float | None) -> None:
        if not self.client_mode:
            await self.remove_p2p_handlers(self._p2p, namespace=self.prefix)  # type: ignore[attr-defined]
        for group in list(self._running_groups.values()):
            if group.done() and not group.cancelled() and group.exception() is None:
                group.result().finalize(cancel=True)
            else:
                group.cancel()
