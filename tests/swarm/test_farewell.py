"""An average that takes too long is a report like any other."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from trainer.swarm.farewell import Farewell
from trainer.wire import Outcome


class Stuck(Farewell):
    timing = SimpleNamespace(averaging_s=1)
    was_broken_off = False

    async def _average(self, group: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.was_broken_off = True


async def test_an_average_that_takes_too_long_is_broken_off_and_fails_in_words():
    averager = Stuck()
    report = await averager._aggregate_with_group("group")
    assert averager.was_broken_off
    assert report["outcome"] is Outcome.FAILED
    assert report["reason"] == "the average took longer than 1 s"
