"""A part of a core for a process and all its children: a cgroup (version 1 or 2; needs root)."""

from __future__ import annotations

import os
from pathlib import Path

from tests.waiting import wait_for

PERIOD_US = 20_000
ROOT = Path("/sys/fs/cgroup")


class Throttle:
    """Raises OSError where cgroups cannot be made."""

    def __init__(self, name: str, cores: float) -> None:
        one = ROOT / "cpu"
        self.place = (one if one.is_dir() else ROOT) / f"potluck-{os.getpid()}-{name}"
        self.place.mkdir()
        quota = int(cores * PERIOD_US)
        if one.is_dir():
            (self.place / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.place / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self.place / "cpu.max").write_text(f"{quota} {PERIOD_US}")

    def take(self, pid: int) -> None:
        """Moves a process that has no children yet."""
        (self.place / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """After its processes have ended, which the kernel may learn a moment later."""
        wait_for("end of its processes", self._is_empty)
        self.place.rmdir()

    def _is_empty(self) -> bool:
        return not (self.place / "cgroup.procs").read_text().strip()
