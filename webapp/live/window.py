"""Puts one session's reports into order; each number comes out once."""

from __future__ import annotations

from trainer.wire import Report

MOST_HELD = 1000


class Window:
    """`taken` is the highest number that came out. A report far ahead is dropped; it is resent."""

    def __init__(self, stored_seq: int) -> None:
        self.taken = stored_seq
        self._held: dict[int, Report] = {}

    def take(self, report: Report) -> list[Report]:
        """The reports that are next, now that this one is here; often one, or none."""
        if not self.taken < report.seq <= self.taken + MOST_HELD:
            return []
        self._held.setdefault(report.seq, report)
        ready = []
        while (following := self._held.pop(self.taken + 1, None)) is not None:
            self.taken += 1
            ready.append(following)
        return ready
