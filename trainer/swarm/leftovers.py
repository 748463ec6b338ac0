"""Sweeps what killed peers left on this machine.

Guards against hivemind 1.1.12: a peer that is killed leaves its control sockets in /tmp and, where
torch shares memory by file, its tensors in /dev/shm.
"""

from __future__ import annotations

import os
import re
import socket
import time
from contextlib import suppress
from pathlib import Path

STARTING_S = 60.0  # a younger socket may belong to a peer that does not listen yet


def sweep(shared_memory: Path = Path("/dev/shm"), sockets: Path = Path("/tmp")) -> int:  # noqa: S108
    """Removes our own leftovers of dead processes; returns how many files that were."""
    dead = [p for p in shared_memory.glob("torch_*") if _ours(p) and not _owner_lives(p.name)]
    used = _mapped() if dead else set()  # reading all of /proc is no work for every start
    dead = [path for path in dead if str(path) not in used]
    dead += [p for p in sockets.glob("hivemind-p2p*.sock") if _ours(p) and _abandoned(p)]
    for path in dead:
        path.unlink(missing_ok=True)
    return len(dead)


def reap() -> None:
    """Ended children of the agent that this process was before it became a new one."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _ours(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False


def _mapped() -> set[str]:
    """Shared memory that a process of ours holds, whoever made it: torch 2.13 aborts a process that
    lets go of a segment whose file is gone."""
    used: set[str] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):  # it has ended, or is somebody else's
            used.update(re.findall(r"(/\S*/torch_\S+)", maps.read_text()))
    return used


def _owner_lives(name: str) -> bool:
    found = re.match(r"torch_(\d+)_", name)
    if found is None:
        return True
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _abandoned(path: Path) -> bool:
    try:
        if time.time() - path.lstat().st_mtime < STARTING_S:
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(0.2)
            probe.connect(str(path))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
