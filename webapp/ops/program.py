"""One supervised program: started in a group of its own, restarted with back-off, stopped whole."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

from webapp.core.processes import follow_parent_into_death, signal_group

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
HEALTHY_AFTER_S = 30.0
STOP_S = 10.0
LAST_LINES_S = 1.0
PROBE_EVERY_S = 0.05
LOOK_EVERY_S = 0.1
LOG_BYTES = 5_000_000

Probe = Callable[[], Awaitable[bool]]


def say(name: str, line: str) -> None:
    print(f"{name:>11} | {line}", flush=True)


def log_file(path: Path) -> logging.Logger:
    """A logger that writes bare lines to `path`, three older files of 5 MB kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=3, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.Logger(path.stem)
    logger.addHandler(handler)
    return logger


async def end_of(process: asyncio.subprocess.Process) -> int:
    """Its exit code. Unlike `process.wait()`, this does not wait for others that hold its pipe."""
    while process.returncode is None:
        await asyncio.sleep(LOOK_EVERY_S)
    return process.returncode


class Program:
    """`ready` answers whether the program serves; without it, running counts as ready."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        ready: Probe | None = None,
        env: Mapping[str, str] | None = None,
        nice: int = 0,
        again: Callable[[int], bool] = lambda code: True,
    ) -> None:
        self.name = name
        self.command = list(command)
        self.env = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
        self.is_ready = asyncio.Event()
        self.restarts = 0
        self._ready, self._nice, self._again = ready, nice, again
        self._log = log_file(log)
        self._process: asyncio.subprocess.Process | None = None

    async def keep_running(self, stopping: asyncio.Event) -> None:
        """Until `stopping` is set: start, wait for its end, start again after a growing delay."""
        delay = FIRST_DELAY_S
        while not stopping.is_set():
            began = time.monotonic()
            code = await self._live_once()
            if stopping.is_set():
                return
            lived = time.monotonic() - began
            if not self._again(code):
                self.note(f"ended with code {code} and is not started again")
                return
            delay = FIRST_DELAY_S if lived > HEALTHY_AFTER_S else delay
            self.restarts += 1
            self.note(f"ended with code {code} after {lived:.1f} s; starts again in {delay:.1f} s")
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), delay)
            delay = min(delay * 2, LONGEST_DELAY_S)

    async def _live_once(self) -> int:
        self._process = process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self.env,
            start_new_session=True,
            preexec_fn=self._before_exec,
            limit=1 << 20,
        )
        assert process.stdout is not None
        output = asyncio.create_task(self._copy_output(process.stdout))
        probing = asyncio.create_task(self._probe_until_ready())
        code = await end_of(process)
        probing.cancel()
        self.is_ready.clear()
        self.kill_group()  # what it started in its group and did not stop
        await asyncio.wait({output}, timeout=LAST_LINES_S)  # others may hold the pipe: read on
        return code

    def _before_exec(self) -> None:
        follow_parent_into_death()
        if self._nice:
            os.nice(self._nice)

    async def _copy_output(self, stream: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # longer than the limit; the reader has dropped it
                continue
            if not line:
                return
            if text := line.decode(errors="replace").rstrip():
                self.note(text)

    async def _probe_until_ready(self) -> None:
        while self._ready is not None and not await self._ready():
            await asyncio.sleep(PROBE_EVERY_S)
        self.is_ready.set()

    def note(self, line: str) -> None:
        say(self.name, line)
        self._log.info(line)

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL to the whole group after 10 s."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(end_of(process), STOP_S)
        except TimeoutError:
            self.note(f"did not stop within {STOP_S:.0f} s: killed")
        self.kill_group()
        await end_of(process)

    def kill_group(self) -> None:
        if self._process is not None:
            signal_group(self._process.pid, signal.SIGKILL)
