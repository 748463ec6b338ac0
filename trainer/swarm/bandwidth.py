"""How fast each member's link is believed to be, and which share of the average it carries.

Speeds are in Mbit/s, the smaller of up and down. A member's claim is believed only as far as
others have seen it send, because the load balancer gives most of the vector to the fastest link:
one that claims 10^9 would draw the whole average to itself.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from hivemind.averaging.load_balancing import load_balance_peers

SMOOTHING = 0.3
BELIEVED = 2.0  # times the fastest sight of a peer
LEAST_BYTES = 1 << 16  # of a measurement: less tells the latency, not the speed
MOST_SEEN = 32


class LinkMeter:
    """What this peer has measured: its own speed each way, and how fast each other one sends."""

    def __init__(self) -> None:
        self._ways: dict[str, float] = {}
        self._seen: dict[str, float] = {}

    def measured(self, way: str, num_bytes: int, seconds: float) -> None:
        """`way` is "up" or "down". What waits for others is slower than the link, so a higher
        value counts at once and a lower one little by little."""
        _smooth(self._ways, way, num_bytes, seconds)

    def saw(self, peer: str, num_bytes: int, seconds: float) -> None:
        """`peer` has sent us so much."""
        _smooth(self._seen, peer, num_bytes, seconds)

    def speed(self) -> float | None:
        """None until there is a measurement."""
        return min(self._ways.values(), default=None)

    def seen(self) -> dict[str, float]:
        """The fastest senders, rounded, for the note that travels with an offer."""
        fastest = sorted(self._seen.items(), key=lambda item: -item[1])[:MOST_SEEN]
        return {peer: round(speed, 2) for peer, speed in fastest}


def _smooth(known: dict[str, float], name: str, num_bytes: int, seconds: float) -> None:
    if num_bytes < LEAST_BYTES or seconds <= 0:
        return
    speed = num_bytes * 8e-6 / seconds
    old = known.get(name, speed)
    known[name] = max(speed, old + SMOOTHING * (speed - old))


def believed(
    claims: Mapping[str, float | None], seen: Mapping[str, Mapping[str, float]]
) -> dict[str, float | None]:
    """Speeds by peer, from what all members know alike: the claims, and who saw whom how fast.

    Nobody saw it: no more than the middle of the claims. None stays None (no claim).
    """
    known = [claim for claim in claims.values() if claim is not None]
    middle = statistics.median(known) if known else 0.0
    speeds: dict[str, float | None] = {}
    for peer, claim in claims.items():
        sights = [by[peer] for witness, by in seen.items() if witness != peer and peer in by]
        limit = BELIEVED * max(sights) if sights else middle
        speeds[peer] = None if claim is None else min(claim, limit)
    return speeds


def share_out(
    vector_size: int, speeds: Sequence[float | None], is_sender: Sequence[bool], least: int = 0
) -> tuple[int, ...]:
    """How many of `vector_size` elements each member averages; the same on every member.

    A sender gets none. A slow full peer gets one element: with none, hivemind lets it receive only
    after it has sent everything, which doubles its time (measured: 16.5 s instead of 9.4).
    """
    given = [0.0 if sender else speed for speed, sender in zip(speeds, is_sender, strict=True)]
    parts = list(load_balance_peers(vector_size, given, least))
    largest = max(range(len(parts)), key=lambda place: parts[place])
    for place, sender in enumerate(is_sender):
        if not sender and parts[place] == 0 and parts[largest] > 1:
            parts[place] = 1
            parts[largest] -= 1
    return tuple(parts)
