"""No process of a peer outlives it, however it ends.

Guards against hivemind 1.1.12, whose DHT, averager and p2pd live on as a ghost peer when the
main process is killed with -9, and whose p2pd dies of a Ctrl-C that was meant for the main process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_PDEATHSIG = 1
SIGNALS = {int(one): one.name for one in signal.Signals}
_parent: int | None = None  # set while this process, or a child of it, starts hivemind's
_registered = False


class ProcessEnded(Exception):
    """A process that this peer cannot do without is gone; says which. The agent must begin anew."""


def how_it_ended(name: str, exit_code: int | None = None) -> str:
    """In words. A negative exit code, as Python gives it, is the number of a signal."""
    if exit_code is None or exit_code >= 0:
        return f"{name} ended by itself"
    why = ", as when memory runs out" if exit_code == -signal.SIGKILL else ""
    return f"{name} was killed ({SIGNALS.get(-exit_code, -exit_code)}{why})"


@contextmanager
def children_end_with_us() -> Iterator[None]:
    """Processes forked inside, and all that they fork later, die with the process they came from.

    They also leave our process group, and take no signal handler of ours along.
    """
    global _parent, _registered
    if not _registered:
        os.register_at_fork(before=_remember, after_in_child=_bind)
        _registered = True
    _parent = os.getpid()
    try:
        yield
    finally:
        _parent = None


def end_with_parent(number: signal.Signals) -> None:
    """This process gets the signal when the one that started it ends, however that ends."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _remember() -> None:
    global _parent
    if _parent is not None:
        _parent = os.getpid()


def _bind() -> None:
    if _parent is None:
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    end_with_parent(signal.SIGKILL)
    if os.getppid() != _parent:  # it died before we could ask
        os._exit(1)
