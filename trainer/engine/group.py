"""Processes of one device that train one peer's micro-batches together; the first is the agent's.

They talk over gloo on the loopback interface and find each other by a file in the device's folder.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import socket
from contextlib import suppress
from datetime import timedelta
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil
import torch
import torch.distributed as dist

from trainer.engine.model import build
from trainer.engine.shard import Command, Shard
from trainer.recipe import Recipe
from trainer.swarm import orphans

FILENAME = "group"
LOOPBACK = "127.0.0.1"
LONGEST = timedelta(days=30)  # a group waits for its first process through any pause
END_S = 10.0
ENDING_S = 1.0  # after its connections are closed already
log = logging.getLogger(__name__)


class Group:
    """`size` processes, of which this is the first. It starts the others, and ends them."""

    def __init__(self, size: int, recipe: Recipe, pad_id: int, folder: Path) -> None:
        path = folder / FILENAME
        path.unlink(missing_ok=True)
        threads = max(1, torch.get_num_threads() // size)
        fork = multiprocessing.get_context("fork")
        with orphans.children_end_with_us():
            self._others: list[BaseProcess] = [
                fork.Process(target=_follow, args=(path, rank, size, recipe, pad_id, threads))
                for rank in range(1, size)
            ]
            for process in self._others:
                process.daemon = True
                process.start()
        _join(path, 0, size, threads)

    def problem(self) -> str:
        """What became of the first that ended by itself; "" while all are there."""
        ending = connection.wait([process.sentinel for process in self._others], ENDING_S)
        codes = []
        for process in self._others:
            if process.sentinel in ending:
                process.join()
                codes.append(process.exitcode or 0)
        return orphans.how_it_ended("a process of this device's group", min(codes)) if codes else ""

    def close(self, shard: Shard) -> None:
        with suppress(RuntimeError):  # one of them has ended before
            shard.lead(Command.END)
        for process in self._others:
            process.join(END_S)
            process.kill()
            process.join()
        dist.destroy_process_group()


def _join(path: Path, rank: int, size: int, threads: int) -> None:
    torch.set_num_threads(threads)
    if torch.cuda.is_available():
        torch.cuda.set_device(rank % torch.cuda.device_count())
    os.environ["GLOO_SOCKET_IFNAME"] = _loopback()
    store = dist.FileStore(str(path), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=LONGEST)


def _loopback() -> str:
    """Name of the network interface that only this machine reaches."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and a.address == LOOPBACK for a in addresses):
            return name
    raise OSError(f"no network interface has the address {LOOPBACK}: a group needs it")


def _follow(path: Path, rank: int, size: int, recipe: Recipe, pad_id: int, threads: int) -> None:
    """The whole life of a process that is not the first."""
    try:
        _join(path, rank, size, threads)
        family, model = build(recipe, pad_id)
        shard = Shard(family, model, recipe.optimizer)
        while shard.obey():
            pass
    except RuntimeError as error:
        log.info("process %d of the group ends: %s", rank, error)
        os._exit(1)
    os._exit(0)
