"""Ways in which a member differs from an honest, quick one; `job.json` names them: `lies`."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from typing import Any, AsyncIterator  # noqa: UP035 - hivemind reads this name

import numpy as np
import torch
from hivemind.p2p import P2PContext
from hivemind.proto import averaging_pb2

from trainer.engine import group
from trainer.engine.ending import Ending
from trainer.engine.learner import Learner
from trainer.engine.loop import RoundLoop
from trainer.swarm import averager
from trainer.swarm.averager import RoundAverager
from trainer.swarm.codec import Codec


def tell(lies: dict[str, Any]) -> None:
    """Call before the engine starts: its processes are forked, lies and all."""
    for name, value in lies.items():
        WAYS[name](value)


def send_nan(_: Any) -> None:
    """Past every check of its own: in the parts for others, not in those it averages."""

    class Nan(Codec):
        def compress(self, tensor, info=None, allow_inplace=False):
            message = super().compress(tensor)
            if info is not None and message.dtype == "fp16":
                message.buffer = b"\0\0" + np.full(tensor.numel(), np.nan, "<f2").tobytes()
            return message

    averager.Codec = Nan


def change_note(changes: dict[str, Any]) -> None:
    honest = Ending._note
    Ending._note = lambda self, *given: honest(self, *given).model_copy(update=changes)


def change_record(changes: dict[str, Any]) -> None:
    honest = RoundLoop.standing
    RoundLoop.standing = lambda self: honest(self).model_copy(update=changes)


def poison(round_number: int) -> None:
    """The step of this round goes far astray, and everybody takes it."""
    honest = Learner.accept

    def accept(self, mean, notes):
        bad = self.round == round_number
        honest(self, mean, notes)
        if bad:
            with torch.no_grad():
                for anchor in self.anchor:
                    anchor.mul_(20)
            self.begin()

    Learner.accept = accept


def set_clock(jumps: list[list[float]]) -> None:
    """[[0, 5.0], [20, 3605.0]]: off by 5 s at first, and by an hour more after 20 s."""
    honest, wrong = time.time, multiprocessing.get_context("fork").Value("d", jumps[0][1])
    time.time = lambda: honest() + wrong.value
    for after_s, value in jumps[1:]:
        timer = threading.Timer(after_s, setattr, (wrong, "value", value))
        timer.daemon = True
        timer.start()


def slow_down(seconds: float) -> None:
    """No lie: every micro-batch takes so much longer, as on a weaker machine."""
    if not seconds:
        return
    honest = Learner.learn

    def learn(self, *batch):
        time.sleep(seconds)
        return honest(self, *batch)

    Learner.learn = learn


def drag(seconds: float) -> None:
    """No lie: so long passes before each average that others get from it, as over a slow link."""
    honest = RoundAverager.rpc_aggregate_part

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        async for message in honest(self, stream, context):
            await asyncio.sleep(seconds)
            yield message

    RoundAverager.rpc_aggregate_part = rpc_aggregate_part


def die_early(part: str) -> None:
    """No lie: a process of its own is killed while it starts."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if part == "averaging":
        RoundAverager.run = die
    else:
        group._follow = die


WAYS = {
    "nan": send_nan,
    "note": change_note,
    "record": change_record,
    "poison": poison,
    "clock": set_clock,
    "slow": slow_down,
    "drag": drag,
    "dies early": die_early,
}
