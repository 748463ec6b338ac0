"""The memory that this process's container lets it have: Linux control groups, version 1 or 2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

GROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


class Limit(NamedTuple):
    """`used_bytes` without what the kernel would give back first: files that lie in memory."""

    bytes: int
    used_bytes: int

    @property
    def left_bytes(self) -> int:
        return max(0, self.bytes - self.used_bytes)


class _Names(NamedTuple):
    limit: str
    used: str
    droppable: str


VERSION_1 = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
VERSION_2 = _Names("memory.max", "memory.current", "inactive_file")


def memory_limits(own: Path = OWN, groups: Path = GROUPS) -> list[Limit]:
    """Of the group of this process and of those around it; empty where there is none.

    A container may see its own group as the outermost one, whatever the path says.
    """
    try:
        lines = own.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):  # not Linux
        return []
    return [limit for line in lines for limit in _limits_of(line, groups)]


def _limits_of(line: str, groups: Path) -> Iterator[Limit]:
    """A line is `number:controllers:path`; version 2 names no controllers."""
    _, controllers, path = line.split(":", 2)
    if controllers and "memory" not in controllers.split(","):
        return
    names = VERSION_1 if controllers else VERSION_2
    folder = groups / "memory" if controllers else groups
    inside = PurePosixPath(path.lstrip("/"))
    for group in (inside, *inside.parents):
        if limit := _read(folder / group, names):
            yield limit


def _read(group: Path, names: _Names) -> Limit | None:
    """None without a limit; version 2 then says "max"."""
    try:
        limit = int((group / names.limit).read_text())
        used = int((group / names.used).read_text())
        lines = (group / "memory.stat").read_text().splitlines()
        counts = dict(line.split() for line in lines)
    except (OSError, ValueError):
        return None
    return Limit(limit, max(0, used - int(counts.get(names.droppable, 0))))
