"""Reports on disk until the site has stored them: one file per session, one line per report.

A line is `crc32 json`, appended and fsync'd. Whatever the machine does, the file is a run of whole
lines and at most one damaged end, which is cut off when it is read. A disk that cannot be written
stops nothing: reports stay in memory, `trouble` says so, and they are written when it can be.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
import zlib
from collections import deque
from pathlib import Path

from trainer.launcher.place import in_words
from trainer.wire import Body, Bye, Report

log = logging.getLogger(__name__)
SUFFIX = ".jsonl"


def _line(report: Report) -> bytes:
    text = report.model_dump_json().encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _report(line: bytes) -> Report:
    """Raises ValueError on a damaged line."""
    code, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or code != b"%08x" % zlib.crc32(text):
        raise ValueError("damaged line")
    return Report.model_validate_json(text)


class Spool:
    """The numbered reports of one session. All methods may be called from any thread."""

    def __init__(self, folder: Path, session: str) -> None:
        self.session = session
        self.path = folder / f"{session}{SUFFIX}"
        self.trouble = ""
        self._lock = threading.Lock()
        self._kept: deque[Report] = deque()
        self._size_bytes = 0  # of the whole lines on disk
        self._num_unwritten = 0  # the newest so many of `_kept` are in memory only
        self._read()
        self.last_seq = self._kept[-1].seq if self._kept else 0

    def _read(self) -> None:
        try:
            lines = self.path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return
        except OSError as error:
            self.trouble = in_words(error, self.path)
            return
        for number, line in enumerate(lines):
            try:
                self._kept.append(_report(line))
            except ValueError:
                log.warning(
                    "%s is damaged from line %d on: %d reports kept, %d lines lost",
                    self.path.name, number + 1, number, len(lines) - number,
                )  # fmt: skip
                break
            self._size_bytes += len(line)

    def add(self, body: Body) -> Report:
        """Numbers and keeps a report. On disk when this returns, unless in `trouble`."""
        with self._lock:
            self.last_seq += 1
            report = Report(seq=self.last_seq, at=time.time(), body=body)
            self._kept.append(report)
            self._num_unwritten += 1
            self._write()
            return report

    def _write(self) -> None:
        unwritten = list(self._kept)[len(self._kept) - self._num_unwritten :]
        data = b"".join(_line(report) for report in unwritten)
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.ftruncate(handle, self._size_bytes)  # cuts off what a failed write left
                if os.pwrite(handle, data, self._size_bytes) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            if not self.trouble:
                log.warning("reports are kept in memory: %s", error)
            self.trouble = f"Reports are kept in memory. {in_words(error, self.path)}"
            return
        self._size_bytes += len(data)
        self._num_unwritten = 0
        self.trouble = ""

    def acknowledge(self, seq: int) -> None:
        """Forgets reports up to and including `seq`; an empty file takes no space."""
        with self._lock:
            while self._kept and self._kept[0].seq <= seq:
                self._kept.popleft()
            self._num_unwritten = min(self._num_unwritten, len(self._kept))
            if not self._kept and self._size_bytes:
                try:
                    os.truncate(self.path, 0)
                    self._size_bytes = 0
                except OSError as error:
                    log.warning("%s cannot be emptied: %s", self.path.name, error)

    def after(self, seq: int, limit: int = 200) -> list[Report]:
        """The oldest unacknowledged reports with a higher number than `seq`."""
        with self._lock:
            found = (report for report in self._kept if report.seq > seq)
            return [report for report, _ in zip(found, range(limit), strict=False)]

    def said_bye(self) -> bool:
        with self._lock:
            return any(isinstance(report.body, Bye) for report in self._kept)

    @property
    def num_waiting(self) -> int:
        return len(self._kept)

    def has_gap_after(self, stored_seq: int) -> bool:
        """Whether a report that the site once acknowledged is missing there (its disk failed)."""
        with self._lock:
            first = self._kept[0].seq if self._kept else self.last_seq + 1
            return stored_seq + 1 < first

    def move_to(self, session: str) -> None:
        """Numbers what is left from 1 again, under a new session: the way over a gap."""
        with self._lock:
            self.delete()
            self.session, self.path = session, self.path.with_name(f"{session}{SUFFIX}")
            self._kept = deque(
                report.model_copy(update={"seq": seq}) for seq, report in enumerate(self._kept, 1)
            )
            self.last_seq = self._num_unwritten = len(self._kept)
            self._size_bytes = 0
            self._write()

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)


def earlier_sessions(folder: Path, current: str) -> list[Spool]:
    """Spools of sessions that ended without delivering everything, oldest first."""
    paths = [path for path in folder.glob(f"*{SUFFIX}") if path.stem != current]
    found = []
    for path in sorted(paths, key=lambda path: path.stat().st_mtime):
        spool = Spool(folder, path.stem)
        if spool.num_waiting:
            found.append(spool)
        elif not spool.trouble:
            spool.delete()
    return found
