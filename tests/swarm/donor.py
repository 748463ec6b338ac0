"""A peer that has a state and gives it: `python -m tests.swarm.donor FOLDER ROUND [dies|dawdles]`.

One that `dies` is killed as `kill -9` does it when a part of its state is on the way; one that
`dawdles` makes a file `giving` then, and gives a message a second.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, AsyncIterator  # noqa: UP035 - hivemind reads this name

from hivemind.p2p import P2PContext
from hivemind.proto import averaging_pb2

from tests.swarm.member import job_in
from trainer.engine.learner import Learner
from trainer.engine.peer import swarm_peer
from trainer.swarm import clock
from trainer.swarm.averager import RoundAverager
from trainer.swarm.progress import Stage, Standing
from trainer.text.tokenizer import Tokenizer

MAIN = os.getpid()


give_all = RoundAverager.rpc_download_state


async def give_a_part(
    self: RoundAverager, request: averaging_pb2.DownloadRequest, context: P2PContext
) -> AsyncIterator[averaging_pb2.DownloadData]:
    async for message in give_all(self, request, context):
        yield message
        os.kill(MAIN, signal.SIGKILL)
        time.sleep(60)  # this process dies with the main one


async def give_slowly(
    self: RoundAverager, request: averaging_pb2.DownloadRequest, context: P2PContext
) -> AsyncIterator[averaging_pb2.DownloadData]:
    async for message in give_all(self, request, context):
        yield message
        if message.tensor_part.dtype:
            (Path(sys.argv[1]) / "giving").touch()
        await asyncio.sleep(1)


def main(folder: Path, round_number: int) -> None:
    multiprocessing.set_start_method("fork", force=True)
    job = job_in(folder)
    learner = Learner(job.recipe, Tokenizer.of(job.recipe, job.tokenizer).pad, job.base)
    learner.load_state(round_number, learner.state()[1])

    def standing() -> Standing:
        now = clock.now()
        facts: dict[str, Any] = {"role": job.role, "stage": Stage.AWAY}
        return Standing(round=round_number, started=now, at=now, **facts)

    one = swarm_peer(job)
    one.average(learner.offer_shapes(), learner.state)
    one.share_state(round_number)
    one.track(standing)
    signal.pause()


if __name__ == "__main__":
    if "dies" in sys.argv:
        RoundAverager.rpc_download_state = give_a_part  # type: ignore[method-assign]
    elif "dawdles" in sys.argv:
        RoundAverager.rpc_download_state = give_slowly  # type: ignore[method-assign]
    main(Path(sys.argv[1]), int(sys.argv[2]))
