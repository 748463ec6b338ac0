"""How each peer is connected, and how long transfers over such links take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """`latency_s` is one way to the middle of the net. One that is not `reachable` only sends.

    `stalls` is the share of averages in which nothing more comes over it.
    """

    up_mbit_s: float
    down_mbit_s: float
    latency_s: float
    reachable: bool = True
    stalls: float = 0.0

    @property
    def mbit_s(self) -> float:
        """What a peer measures of it."""
        return min(self.up_mbit_s, self.down_mbit_s)


KINDS = {
    "lan": Link(1000, 1000, 0.0005),
    "fibre": Link(200, 500, 0.005),
    "cable": Link(40, 200, 0.01),
    "dsl": Link(10, 50, 0.02),
    "nat": Link(40, 200, 0.015, reachable=False),
    "mobile": Link(8, 30, 0.06, reachable=False, stalls=0.01),
    "stalling": Link(40, 200, 0.1, stalls=0.1),
}


def exchange_s(links: Sequence[Link], shares: Sequence[float], vector_bytes: int) -> float:
    """Time of an all-reduce that is limited by the links alone.

    A member with share f of the vector sends (1-f) to the others and takes as much averaged back;
    as the reducer of f it takes f from each of the n-1 others, and sends f back to each.
    """
    others = len(links) - 1
    slowest = max(
        ((1 - share) + share * others) * vector_bytes * 8e-6 / link.mbit_s
        for link, share in zip(links, shares, strict=True)
    )
    return slowest + 4 * max(link.latency_s for link in links)


def traffic_bytes(share: float, members: int, vector_bytes: int) -> int:
    """What a member with this share sends, and also what it receives."""
    return int(((1 - share) + share * (members - 1)) * vector_bytes)


def transfer_s(sender: Link, receiver: Link, size_bytes: int) -> float:
    rate = min(sender.up_mbit_s, receiver.down_mbit_s)
    return size_bytes * 8e-6 / rate + 2 * (sender.latency_s + receiver.latency_s)
