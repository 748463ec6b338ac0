"""An average that is let go of, takes too long, or whose process is shut down in its middle, ends
in order.

Guards against hivemind 1.1.12: its shutdown takes the futures of its running groups for the groups
and fails; the end of an average whose step was cancelled is an error that nobody looks at; so is
the end of one that took too long, and whoever waits for the step takes it for a limit of his own.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import InvalidStateError
from typing import Any

from hivemind.averaging.control import StepControl

from trainer.recipe import Round
from trainer.wire import Outcome


class Farewell:
    """The part of the averager that ends it."""

    client_mode: bool
    prefix: str
    timing: Round
    _p2p: Any
    _running_groups: dict[bytes, asyncio.Future[Any]]

    async def _aggregate_with_group(self, *group: Any, **options: Any) -> dict[str, Any]:
        longest_s = self.timing.averaging_s
        try:
            async with asyncio.timeout(longest_s):
                report: dict[str, Any] = await self._average(*group, **options)  # type: ignore[attr-defined]
                return report
        except TimeoutError:
            reason = f"the average took longer than {longest_s:.0f} s"
            return {"outcome": Outcome.FAILED, "notes": {}, "reason": reason}

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
