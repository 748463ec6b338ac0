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

from webapp.core.processes import follow_parent_into_death, signal_group, without_secrets

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
HEALTHY_AFTER_S = 30.0
STOP_S = 10.0
LAST_LINES_S = 1.0
PROBE_EVERY_S = 0.05
LONGEST_LINE_BYTES = 1 << 20
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


class Program:
    """`ready` answers whether the program serves; without it, running counts as ready.

    It is killed when it has not ended `stop_s` seconds after SIGTERM. What is not the site itself
    gets none of its secrets.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        ready: Probe | None = None,
        env: Mapping[str, str] | None = None,
        is_site: bool = False,
        nice: int = 0,
        stop_s: float = STOP_S,
        again: Callable[[int], bool] = lambda code: True,
    ) -> None:
        self.name = name
        self.stop_s = stop_s
        self.command = list(command)
        known = os.environ if is_site else without_secrets()
        self.env = {**known, "PYTHONUNBUFFERED": "1", **(env or {})}
        self.is_ready = asyncio.Event()
        self.restarts = 0
        self._ready, self._nice, self._again = ready, nice, again
        self._log = log_file(log)
        self._outputs: set[asyncio.Task[None]] = set()
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
        """The exit code of one life.

        The pipe is our own, because programs of a killed program may hold it on: asyncio's would
        keep us waiting for them, and closing it would break what they write at their end.
        """
        read_end, write_end = os.pipe()
        self._process = process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=write_end,
            stderr=asyncio.subprocess.STDOUT,
            env=self.env,
            start_new_session=True,
            preexec_fn=self._before_exec,
        )
        os.close(write_end)
        output = asyncio.create_task(self._copy_output(read_end))
        self._outputs.add(output)
        output.add_done_callback(self._outputs.discard)
        probing = asyncio.create_task(self._probe_until_ready())
        code = await process.wait()
        probing.cancel()
        self.is_ready.clear()
        self.kill_group()  # what it started in its group and did not stop
        await asyncio.wait({output}, timeout=LAST_LINES_S)
        return code

    def _before_exec(self) -> None:
        follow_parent_into_death()
        if self._nice:
            os.nice(self._nice)

    async def _copy_output(self, read_end: int) -> None:
        reader = asyncio.StreamReader(limit=LONGEST_LINE_BYTES)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb")
        )
        try:
            while True:
                try:
                    line = await reader.readline()
                except ValueError:  # longer than the limit; the reader has dropped it
                    continue
                if not line:
                    return
                if text := line.decode(errors="replace").rstrip():
                    self.note(text)
        finally:
            transport.close()

    async def _probe_until_ready(self) -> None:
        while self._ready is not None and not await self._ready():
            await asyncio.sleep(PROBE_EVERY_S)
        self.is_ready.set()

    def note(self, line: str) -> None:
        say(self.name, line)
        self._log.info(line)

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL to the whole group after `stop_s`."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), self.stop_s)
        except TimeoutError:
            self.note(f"did not stop within {self.stop_s:.0f} s: killed")
        self.kill_group()
        await process.wait()

    def kill_group(self) -> None:
        if self._process is not None:
            signal_group(self._process.pid, signal.SIGKILL)
