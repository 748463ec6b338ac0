"""Fewer points that look the same: of each bucket the first, last, lowest and highest are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite

Point = tuple[float, float | None]


@dataclass(slots=True)
class Bucket:
    number: int
    first: Point
    last: Point
    lowest: Point
    highest: Point

    def take(self, point: Point) -> None:
        self.last = point
        if point[1] < self.lowest[1]:  # type: ignore[operator]
            self.lowest = point
        if point[1] > self.highest[1]:  # type: ignore[operator]
            self.highest = point

    def points(self) -> list[Point]:
        return sorted({self.first, self.last, self.lowest, self.highest})


def reduced(
    points: Iterable[Point], *, start: float, end: float, max_points: int
) -> Iterator[Point]:
    """At most `max_points` of `points`, which come in order of x within [start, end].

    One pass, one bucket in memory. Values that are no finite numbers are left out.
    """
    num_buckets = max(1, max_points // 4)
    width = (end - start) / num_buckets or 1.0
    bucket: Bucket | None = None
    for point in points:
        if point[1] is None or not isfinite(point[1]):
            continue
        number = min(int((point[0] - start) / width), num_buckets - 1)
        if bucket is not None and number == bucket.number:
            bucket.take(point)
            continue
        if bucket is not None:
            yield from bucket.points()
        bucket = Bucket(number, point, point, point, point)
    if bucket is not None:
        yield from bucket.points()
