"""The processes, sockets and shared memory of one agent or member, as the system sees them."""

from __future__ import annotations

from pathlib import Path

import psutil

from tests.swarm.site import is_running


def parts_of(pid: int) -> dict[str, psutil.Process]:
    """Its processes by name: "reader", "network", "daemon", "averaging", and "follower" of a group
    of two. A coordinator has no reader."""
    found: dict[str, psutil.Process] = {}
    before = ["reader", "follower"]
    for child in psutil.Process(pid).children():
        daemons = [one for one in child.children() if one.name() == "p2pd"]
        if daemons:
            found |= {"network": child, "daemon": daemons[0]}
        elif is_running(child) and child.name() != "torch_shm_manager":
            found["averaging" if "network" in found else before.pop(0)] = child  # in this order
    return found


def sockets_of(pid: int) -> set[Path]:
    """The control sockets of its network process, its daemon and its averaging process."""
    return {
        Path(socket.laddr)
        for process in parts_of(pid).values()
        for socket in process.net_connections("unix")
        if "/hivemind-p2p" in str(socket.laddr)
    }


def shared_memory_of(*pids: int) -> list[Path]:
    return [path for pid in pids for path in Path("/dev/shm").glob(f"torch_{pid}_*")]


def tree_of(pid: int) -> list[psutil.Process]:
    """It and all that it started."""
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
