"""How the processes of a group that are not the first learn their part, and their whole life.

The first one leaves its assignments, as JSON, in a store that all of them read.
"""

from __future__ import annotations

import logging
import os
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import torch
import torch.distributed as dist
from pydantic import BaseModel, ConfigDict

from trainer.device.precision import Kind
from trainer.engine.arithmetic import Arithmetic
from trainer.engine.model import build
from trainer.engine.sharding import make_shard, way
from trainer.recipe import Recipe

LOOPBACK = "127.0.0.1"
LONGEST = timedelta(days=30)  # a group waits for its first process through any pause
log = logging.getLogger(__name__)


class Assignment(BaseModel):
    """What a group trains and how; `num_threads` is each process's number of threads, `base` the
    folder of a base, `computes` what passes compute in.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipe: Recipe
    pad_id: int
    base: Path | None
    split: str
    computes: Kind
    num_threads: int


class Post:
    """The assignments in a store, in order, the first under 1; an empty one is the last."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def leave(self, assignment: Assignment | None) -> int:
        """From the first process; the number of the assignment. None: there will be no more."""
        number = int(self._store.add("left", 1))
        text = assignment.model_dump_json() if assignment else ""
        self._store.set(f"assignment/{number}", text)
        return number

    def take(self, number: int) -> Assignment | None:
        """Waits until it is there. Raises RuntimeError when the store has gone."""
        text = self._store.get(f"assignment/{number}")
        return Assignment.model_validate_json(text) if text else None

    def meet(self, number: int, backend: str, rank: int, size: int) -> None:
        """This process becomes one of the group, as soon as all are there; waits for ever."""
        os.environ["GLOO_SOCKET_IFNAME"] = _loopback()
        store = dist.PrefixStore(f"group/{number}", self._store)
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=LONGEST)


def prepare(assignment: Assignment, rank: int) -> str:
    """Sets what belongs to the thread that trains; returns what the processes talk over."""
    torch.set_num_threads(assignment.num_threads)
    if torch.cuda.is_available():
        torch.cuda.set_device(rank % torch.cuda.device_count())
        if way(assignment.split).in_step:
            return "cpu:gloo,cuda:nccl"
    return "gloo"


def _loopback() -> str:
    """Name of the network interface that only this machine reaches."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and a.address == LOOPBACK for a in addresses):
            return name
    raise OSError(f"no network interface has the address {LOOPBACK}: a group needs it")


def follow(post: Post, rank: int, size: int) -> bool:
    """The whole life of a process that is not the first; False when it was cut short."""
    number = 1
    try:
        while assignment := post.take(number):
            post.meet(number, prepare(assignment, rank), rank, size)
            family, model = build(assignment.recipe, assignment.pad_id, assignment.base)
            options, arithmetic = assignment.recipe.optimizer, Arithmetic(assignment.computes)
            shard = make_shard(assignment.split, family, model, options, arithmetic)
            while shard.obey():
                pass
            dist.destroy_process_group()
            number += 1
    except (RuntimeError, MemoryError) as error:
        log.info("process %d of the group ends: %s", rank, error)
        return False
    return True
