"""Means over a minute, gathered second by second."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

MINUTE_S = 60


@dataclass
class Sums:
    minute: int
    count: int = 0
    peers: float = 0.0
    samples_per_s: float = 0.0


class MinuteMeans:
    def __init__(self) -> None:
        self._sums: dict[str, Sums] = {}
        self._was_busy: set[str] = set()

    def add(self, slug: str, now: float, peers: int, samples_per_s: float) -> None:
        """Counts one second, unless its minute differs from that of the sums not fetched yet."""
        minute = int(now // MINUTE_S)
        sums = self._sums.setdefault(slug, Sums(minute))
        if sums.minute == minute:
            sums.count += 1
            sums.peers += peers
            sums.samples_per_s += samples_per_s

    def finished(self, now: float) -> list[tuple[str, datetime, float, float]]:
        """(slug, start of the minute, mean peers, mean samples/s) of minutes that are over.

        Of a time without peers only the first minute is told: it ends the line of a chart.
        """
        told = []
        for slug, sums in list(self._sums.items()):
            if sums.minute == int(now // MINUTE_S):
                continue
            del self._sums[slug]
            if sums.peers or slug in self._was_busy:
                at = datetime.fromtimestamp(sums.minute * MINUTE_S, tz=UTC)
                told.append((slug, at, sums.peers / sums.count, sums.samples_per_s / sums.count))
            (self._was_busy.add if sums.peers else self._was_busy.discard)(slug)
        return told
