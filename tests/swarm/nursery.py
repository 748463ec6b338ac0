"""Members as processes forked from one that has loaded torch, transformers and hivemind already.

Loading is most of what a start costs. Each is the leader of its own session, like any program.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from hivemind.utils.asyncio import _AsyncContextWrapper
from hivemind.utils.mpfuture import MPFuture

LOADED = (
    "transformers.models.albert.modeling_albert",
    "transformers.models.gpt2.modeling_gpt2",
    "trainer.engine.peer",
    "tests.swarm.member",
)
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(list(LOADED))


class Child:
    """The part of `subprocess.Popen` that tests use."""

    def __init__(self, program: str, words: Sequence[str], log: Path) -> None:
        self._process: BaseProcess = _forking.Process(target=_become, args=(program, words, log))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float) -> int:
        """Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(str(self._process.name), timeout)
        return code


def _become(program: str, words: Sequence[str], log: Path) -> None:
    """`python -m PROGRAM WORDS >> LOG`."""
    os.setsid()
    _forget_shared_locks()
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = [program, *words]
    sys.modules.pop(program, None)  # runpy warns of what is loaded already
    runpy.run_module(program, run_name="__main__")


def _forget_shared_locks() -> None:
    """hivemind's classes hold locks between processes: a killed member would hold them for all."""
    MPFuture.reset_backend()
    _AsyncContextWrapper.EXECUTOR_LOCK = multiprocessing.get_context("fork").Lock()
