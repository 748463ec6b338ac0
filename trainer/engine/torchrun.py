"""`torchrun --nproc-per-node N -m trainer run ...` as the starter of a group.

Its process of rank 0 is the agent, which alone takes part in the swarm. The others follow it, also
when it becomes a new agent, until it leaves.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from trainer.engine.following import LONGEST, Post, follow
from trainer.swarm import orphans


def post() -> Post:
    """In torchrun's own store; what it starts again begins anew there."""
    store, _, _ = next(rendezvous("env://", timeout=LONGEST))
    return Post(dist.PrefixStore(f"potluck/{os.environ['TORCHELASTIC_RESTART_COUNT']}", store))


def take_part(agent: Callable[[int], int]) -> int:
    """This process's part: `agent`, told the number of processes, or to follow. The exit code."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    orphans.end_with_parent(signal.SIGTERM)
    if rank:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the agent ends in order, and then all do
        return int(not follow(post(), rank, size))
    try:
        return agent(size)
    finally:
        with suppress(RuntimeError):  # torchrun is gone, and its store with it
            post().leave(None)
