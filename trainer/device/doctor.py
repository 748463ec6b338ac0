"""Looks at this machine before it takes part: what is found, in plain words, and what to do."""

from __future__ import annotations

import re
import resource
import shutil
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from trainer.device import clock
from trainer.device.precision import WORDS, native
from trainer.launcher import web
from trainer.launcher.machine import gpu_name, memory_bytes, num_cores
from trainer.launcher.place import Unusable, make_folder

MIB, GIB = 2**20, 2**30
OLDEST_PYTHON, FIRST_TOO_NEW = (3, 11), (3, 14)
MIN_DISK_BYTES = GIB // 2
MIN_MEMORY_BYTES = 2 * GIB
MIN_SHARED_BYTES = 64 * MIB
SHARED_BYTES_A_VALUE = 8  # of hivemind 1.1.12
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
OPEN_FILES = 4096
ANSWER_S = 5.0


class State(StrEnum):
    GOOD = "good"
    DOUBTFUL = "doubtful"  # works, perhaps badly
    BAD = "bad"  # cannot take part


@dataclass(frozen=True)
class Finding:
    name: str
    state: State
    words: str
    fix: str = ""

    def __str__(self) -> str:
        mark = {State.GOOD: "+", State.DOUBTFUL: "?", State.BAD: "!"}[self.state]
        return f"{mark} {self.name}: {self.words} {self.fix}".rstrip()


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"


def check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if OLDEST_PYTHON <= sys.version_info[:2] < FIRST_TOO_NEW:
        return Finding("Python", State.GOOD, f"{version}.")
    return Finding(
        "Python", State.BAD, f"this is {version}; 3.11, 3.12 or 3.13 is needed.", "Install one."
    )


def check_disk(home: Path) -> Finding:
    try:
        free = shutil.disk_usage(make_folder(home)).free
    except (Unusable, OSError) as error:
        return Finding("Disk", State.BAD, str(error))
    if free < MIN_DISK_BYTES:
        return Finding(
            "Disk",
            State.DOUBTFUL,
            f"only {_gib(free)} are free at {home}.",
            f"Free some: {_gib(MIN_DISK_BYTES)} is a safe amount.",
        )
    return Finding("Disk", State.GOOD, f"{_gib(free)} free at {home}.")


def check_memory() -> Finding:
    size = memory_bytes()
    if size and size < MIN_MEMORY_BYTES:
        return Finding(
            "Memory",
            State.DOUBTFUL,
            f"{_gib(size)} is little.",
            "Close other programs if it stalls.",
        )
    return Finding("Memory", State.GOOD, f"{_gib(size)}." if size else "not known.")


def check_shared_memory(num_values: int = 0, place: Path = SHARED_MEMORY) -> Finding:
    """Whether averages of so many values fit there; it is needed on Linux only."""
    if not place.exists():
        return Finding("Shared memory", State.GOOD, "this system needs no /dev/shm.")
    free = shutil.disk_usage(place).free
    needed = max(MIN_SHARED_BYTES, SHARED_BYTES_A_VALUE * num_values)
    if free < needed:
        return Finding(
            "Shared memory",
            State.BAD,
            f"{place} has {free / MIB:.0f} MiB free; averaging needs {needed / MIB:.0f} MiB.",
            f"In a container, start it with --shm-size={max(1, -(-2 * needed // GIB))}g.",
        )
    return Finding("Shared memory", State.GOOD, f"{_gib(free)} free at {place}.")


def check_open_files() -> Finding:
    """Raises the soft limit of this process, which its children inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (ValueError, OSError):
            pass
    if soft != resource.RLIM_INFINITY and soft < 1024:
        return Finding(
            "Open files",
            State.DOUBTFUL,
            f"at most {soft} at once.",
            "Raise it with ulimit -n 4096.",
        )
    return Finding("Open files", State.GOOD, f"up to {soft} at once.")


def check_processor() -> Finding:
    gpu = gpu_name()
    cores = f"{num_cores()} processor cores"
    return Finding("Processor", State.GOOD, f"{gpu} and {cores}." if gpu else f"{cores}, no GPU.")


def check_precision() -> Finding:
    """Loads torch, which takes seconds."""
    words = f"computes {WORDS[native()]} where a collaboration leaves that open."
    return Finding("Precision", State.GOOD, words)


def check_site(site: str) -> Iterator[Finding]:
    """Whether it answers, and how far apart the clocks are."""
    try:
        offset = clock.offset_s(site, timeout_s=ANSWER_S)
    except web.Unreachable as error:
        yield Finding(
            "Site",
            State.DOUBTFUL,
            f"{str(error).removesuffix('.')}.",
            "Check the network; the agent keeps trying.",
        )
        return
    except web.Refusal as error:
        yield Finding("Site", State.BAD, str(error), "Check the address.")
        return
    yield Finding("Site", State.GOOD, f"{site} answers.")
    if abs(offset) <= clock.NOTICED_S:
        yield Finding("Clock", State.GOOD, "agrees with the site's.")
        return
    yield Finding(
        "Clock",
        State.DOUBTFUL,
        f"{clock.in_words(offset)}; the agent corrects for it.",
        "Better: switch on automatic time in the system's settings.",
    )


def check_swarm(bootstrap: Sequence[str]) -> Finding:
    """One TCP connection to any of the addresses where the swarm is entered."""
    tried = []
    for address in bootstrap:
        found = re.match(r"/(?:ip4|ip6|dns4?|dns6)/([^/]+)/tcp/(\d+)", address)
        if not found:
            continue
        host, port = found[1], int(found[2])
        tried.append(f"{host}:{port}")
        try:
            with socket.create_connection((host, port), timeout=ANSWER_S):
                return Finding("Swarm", State.GOOD, f"{host}:{port} answers.")
        except OSError:
            continue
    return Finding(
        "Swarm",
        State.DOUBTFUL,
        f"no answer at {', '.join(tried) or 'any address'}.",
        "A firewall may block outgoing TCP to that port; the agent keeps trying.",
    )


def examine(home: Path, site: str = "") -> list[Finding]:
    """All that can be known before joining."""
    found = [
        check_python(),
        check_disk(home),
        check_memory(),
        check_shared_memory(),
        check_open_files(),
        check_processor(),
    ]
    return found + (list(check_site(site)) if site else [])
