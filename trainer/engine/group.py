"""Processes of one device that train one peer's micro-batches together; the first is the agent's.

They talk over gloo on the loopback interface, and find each other by a file in the device's folder
or by torchrun's store.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch.distributed as dist

from trainer.engine import torchrun
from trainer.engine.following import Assignment, Post, follow, prepare
from trainer.engine.sharding.base import Command, Shard
from trainer.launcher.machine import is_started_by_torchrun
from trainer.swarm import orphans
from trainer.swarm.orphans import ProcessEnded

FILENAME = "group"
END_S = 10.0
ENDING_S = 1.0  # after its connections are closed already
LOOK_EVERY_S = 0.2


class Group:
    """`size` processes, of which this is the first. It starts the others, unless torchrun did.

    When that is done they `meet`; in the end, `close` it, or `end` it where that was never reached.
    """

    def __init__(self, size: int, folder: Path) -> None:
        self._size = size
        self._others: list[BaseProcess] = []
        self._post = torchrun.post() if is_started_by_torchrun() else self._fork(size, folder)

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

    def meet(self, assignment: Assignment) -> None:
        """Raises ProcessEnded when one that it started ends before all are there.

        gloo waits on a thread, which is left to itself then: it cannot be told that nobody comes.
        """
        number, backend = self._post.leave(assignment), prepare(assignment, 0)
        met: Future[None] = Future()

        def meet() -> None:
            try:
                self._post.meet(number, backend, 0, self._size)
                met.set_result(None)
            except BaseException as error:
                met.set_exception(error)

        threading.Thread(target=meet, name="group", daemon=True).start()
        while not wait([met], LOOK_EVERY_S).done:
            if problem := self._problem(0):
                raise ProcessEnded(problem)
        with self.losses_named():
            met.result()

    @contextmanager
    def losses_named(self) -> Iterator[None]:
        """Raises ProcessEnded for what a process that has ended made impossible inside."""
        try:
            yield
        except RuntimeError as error:
            if problem := self._problem(ENDING_S):
                raise ProcessEnded(problem) from error
            raise

    def _problem(self, wait_s: float) -> str:
        """What became of the first that ended by itself; "" while all are there."""
        ending = connection.wait([process.sentinel for process in self._others], wait_s)
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
        self.end(0 if shard.broken else END_S)
        dist.destroy_process_group()

    def end(self, wait_s: float = 0) -> None:
        """Leaves none of those that it started."""
        for process in self._others:
            process.join(wait_s)
            process.kill()
            process.join()


def _follow(path: Path, rank: int, size: int) -> None:
    is_whole = follow(Post(dist.FileStore(str(path), size)), rank, size)
    os._exit(not is_whole)
