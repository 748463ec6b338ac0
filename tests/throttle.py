"""A part of a core, and of the memory, for a process and all its children: control groups of Linux
(version 1 or 2; needs root)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tests.waiting import wait_for

PERIOD_US = 20_000
ROOT = Path("/sys/fs/cgroup")
IS_OLD = (ROOT / "cpu").is_dir()


class Throttle:
    """Raises OSError where control groups cannot be made."""

    def __init__(self, name: str, cores: float, memory_bytes: int = 0) -> None:
        kinds = (["cpu", *(["memory"] if memory_bytes else [])]) if IS_OLD else [""]
        self.places = [ROOT / kind / f"potluck-{os.getpid()}-{name}" for kind in kinds]
        for place in self.places:
            place.mkdir()
        quota = int(cores * PERIOD_US)
        try:
            if IS_OLD:
                self._set("cpu.cfs_period_us", PERIOD_US)
                self._set("cpu.cfs_quota_us", quota)
            else:
                self._set("cpu.max", f"{quota} {PERIOD_US}")
            if memory_bytes:
                self._set("memory.limit_in_bytes" if IS_OLD else "memory.max", memory_bytes)
        except OSError:
            self._remove()
            raise

    def _set(self, name: str, value: int | str) -> None:
        """In the group that has this file: where there are two, each has the files of its kind."""
        kind = name.split(".", 1)[0]
        (place,) = [one for one in self.places if not IS_OLD or one.parent.name == kind]
        (place / name).write_text(str(value))

    def take(self, pid: int) -> None:
        """Moves a process that has no children yet."""
        for place in self.places:
            (place / "cgroup.procs").write_text(str(pid))

    def num_killed(self) -> int:
        """Of its processes, because its memory ran out."""
        file = "memory.oom_control" if IS_OLD else "memory.events"
        counts = dict(line.split() for line in (self.places[-1] / file).read_text().splitlines())
        return int(counts["oom_kill"])

    def remove(self) -> None:
        """After its processes have ended, which the kernel may learn a moment later."""
        wait_for("end of its processes", self._is_empty)
        self._remove()

    def _remove(self) -> None:
        for place in self.places:
            with suppress(FileNotFoundError):
                place.rmdir()

    def _is_empty(self) -> bool:
        return not any((place / "cgroup.procs").read_text().strip() for place in self.places)
