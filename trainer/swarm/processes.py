"""The processes that a peer started: whether all live, and what is left of those that do not.

Guards against hivemind 1.1.12, which waits for ever for the answer of a process that is gone, and
whose killed processes leave their control sockets in /tmp.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil
from hivemind.utils import MPFuture

from trainer.swarm.orphans import ProcessEnded, how_it_ended

LOOK_EVERY_S = 1.0
END_S = 5.0
SOCKETS = "hivemind-p2p"
log = logging.getLogger(__name__)


class Processes:
    """Looks after them on a thread of its own, from `watch` until `close`."""

    def __init__(self) -> None:
        self._started: list[tuple[str, BaseProcess]] = []
        self._daemons: dict[psutil.Process, str] = {}  # started by one of that name
        self._sockets: set[Path] = set()
        self._words = ""
        self.lost = ""  # by its own death, or that of a daemon that it started
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="processes", daemon=True)

    def watch(self) -> None:
        """From now on none of them may end."""
        self._thread.start()

    def add(self, name: str, process: BaseProcess) -> None:
        """One that was started, and may end no more once they are watched; `survey` it when up."""
        self._started.append((name, process))

    def survey(self) -> None:
        """Finds what belongs to them: the daemons that they started, and control sockets."""
        for name, process in self._started:
            with suppress(psutil.NoSuchProcess):  # the next look tells
                one = psutil.Process(process.pid)
                self._daemons |= dict.fromkeys(one.children(), name)
                self._sockets |= _sockets_of(one)
        for daemon in self._daemons:
            self._sockets |= _sockets_of(daemon)

    def check(self) -> None:
        """Raises ProcessEnded when one of them is gone."""
        if self.lost:
            raise ProcessEnded(self._words)

    def rest(self) -> None:
        """They are about to end in order: that is no fault."""
        self._stop.set()

    def close(self) -> None:
        """Ends whatever is still there of them, at once, and removes its sockets."""
        self.rest()
        self.survey()
        left = [one for one in self._daemons if _lives(one)]
        for _, process in self._started:
            if process.is_alive():
                process.kill()
            process.join(END_S)
        for daemon in left:  # most have ended with the process that they came from
            with suppress(psutil.NoSuchProcess):
                daemon.kill()
        psutil.wait_procs(left, timeout=END_S)
        for path in self._sockets:
            path.unlink(missing_ok=True)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            if not self.lost:
                self._look()
            if self.lost:
                _answer_all(ProcessEnded(self._words))

    def _look(self) -> None:
        for name, process in list(self._started):
            if not process.is_alive():
                self._words = how_it_ended(f"its {name} process", process.exitcode)
                self.lost = name
                return
        for daemon, name in list(self._daemons.items()):
            if not _lives(daemon):
                self._words = how_it_ended(f"its {name} process's daemon")
                self.lost = name
                return


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _sockets_of(process: psutil.Process) -> set[Path]:
    with suppress(psutil.Error):
        found = {Path(str(one.laddr)) for one in process.net_connections("unix") if one.laddr}
        return {path for path in found if path.name.startswith(SOCKETS)}
    return set()


def _answer_all(error: ProcessEnded) -> None:
    """Whoever waits for an answer from another process gets this one."""
    for reference in list((MPFuture._active_futures or {}).values()):
        future = reference()
        if future is not None and not future.done():
            log.info("an answer will not come: %s", error)
            with suppress(Exception):  # it came after all, just now
                future.set_exception(error)
