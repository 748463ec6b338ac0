"""The agent with an averaging process that never gives memory back: `python -m tests.swarm.leaking`

takes the words of `python -m trainer`. Limits are lower than in earnest, so that it takes seconds.
"""

from __future__ import annotations

import sys

from trainer.agent import watchdog
from trainer.commands import main
from trainer.swarm.averager import RoundAverager

LEAK_BYTES = 64 * 2**20
held: list[bytes] = []


def leak() -> None:
    honest = RoundAverager._prepare

    async def prepare(self, future, bits, others):
        held.append(b"1" * LEAK_BYTES)
        await honest(self, future, bits, others)

    RoundAverager._prepare = prepare  # type: ignore[method-assign]
    watchdog.EVERY_S, watchdog.WARM_ROUNDS = 0.5, 1
    watchdog.GROWTH, watchdog.GROWTH_BYTES = 1.0, 3 * LEAK_BYTES


if __name__ == "__main__":
    leak()
    sys.exit(main())
