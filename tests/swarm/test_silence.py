"""An average with a member whose network stands still, with its connections open."""

from __future__ import annotations

import asyncio
import signal

import pytest
import torch
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.p2p import P2P

from trainer.swarm.codec import Codec
from trainer.swarm.door import Door, GuardedCalls
from trainer.swarm.reducer import Entry
from trainer.swarm.reduction import CheckedRunner

pytestmark = pytest.mark.swarm


class Introduced(Door):
    """Everybody has shown a passport a moment ago."""

    def __init__(self) -> None:
        """Knows nobody's."""

    async def enter(self, name: str, introduce: object) -> None:
        """They may be called."""


class Averager(GuardedCalls, AllReduceRunner):
    _door_here = Introduced()


ENTRIES = [Entry(0.5, 1000**0.5), Entry(0.5, 1000**0.5)]


async def outcome_with_one_that_stands_still() -> tuple[bool, str]:
    """Whether its reducer counts as failed, and what went wrong first."""
    here = await P2P.create()
    there = await P2P.create(initial_peers=await here.get_visible_maddrs())
    await here.wait_for_at_least_n_peers(1)
    there._child.send_signal(signal.SIGSTOP)
    try:
        runner = CheckedRunner(
            entries=ENTRIES,
            compression=Codec("fp32"),
            p2p=here,
            servicer_type=Averager,
            prefix="average",
            group_id=b"group",
            ordered_peer_ids=(here.peer_id, there.peer_id),
            tensors=[torch.ones(500), torch.ones(500)],
            peer_fractions=(0.5, 0.5),
            sender_timeout=4.0,
            reducer_timeout=8.0,
        )
        async for _ in runner:
            pass
        return there.peer_id in runner.failed_reducers, runner.problem
    finally:
        there._child.send_signal(signal.SIGCONT)
        await there.shutdown()
        await here.shutdown()


def test_a_reducer_to_which_no_stream_can_be_opened_is_given_up_like_a_silent_one():
    failed, problem = asyncio.run(outcome_with_one_that_stands_still())
    assert failed
    assert "did not answer" in problem  # and not what libp2p says when it gives up after 40 s
