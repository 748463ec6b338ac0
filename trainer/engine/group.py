"""Processes of one device that train one peer's micro-batches together; the first is the agent's.

They talk over gloo on the loopback interface, and find each other by a file in the device's folder
or by torchrun's store.
"""

from __future__ import annotations

import multiprocessing
import os
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch.distributed as dist

from trainer.engine import torchrun
from trainer.engine.following import Assignment, Post, follow
from trainer.engine.sharding.base import Command, Shard
from trainer.launcher.machine import is_started_by_torchrun
from trainer.swarm import orphans

FILENAME = "group"
END_S = 10.0
ENDING_S = 1.0  # after its connections are closed already


class Group:
    """`size` processes, of which this is the first. It starts the others, unless torchrun did."""

    def __init__(self, size: int, assignment: Assignment, folder: Path) -> None:
        self._others: list[BaseProcess] = []
        post = torchrun.post() if is_started_by_torchrun() else self._fork(size, folder)
        post.meet(post.leave(assignment), assignment, 0, size)
        self._post = post

    def _fork(self, size: int, folder: Path) -> Post:
        path = folder / FILENAME
        path.unlink(missing_ok=True)
        fork = multiprocessing.get_context("fork")
        with orphans.children_end_with_us():
            for rank in range(1, size):
                process = fork.Process(target=_follow, args=(path, rank, size), daemon=True)
                self._others.append(process)
                process.start()
        return Post(dist.FileStore(str(path), size))

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
        if self._others:
            self._post.leave(None)
        for process in self._others:
            process.join(0 if shard.broken else END_S)
            process.kill()
            process.join()
        dist.destroy_process_group()


def _follow(path: Path, rank: int, size: int) -> None:
    is_whole = follow(Post(dist.FileStore(str(path), size)), rank, size)
    os._exit(not is_whole)
