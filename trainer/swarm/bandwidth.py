"""How fast each member's link is believed to be, and how much of an average it carries. Pure.

Speeds are in Mbit/s, of a link the smaller of up and down. A member's claim is believed only as far
as the others have seen it send, because the fastest links carry most of the vector: one that claims
10^9 would draw the whole average to itself.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainer.swarm.verdict import MOST_RECEIVED, Note, short

SMOOTHING = 0.3
BELIEVED = 2.0  # times what was seen of a peer
LEAST_BYTES = 1 << 17  # of a measurement: less tells the latency, not the speed


@dataclass
class LinkMeter:
    """What this peer has measured: its own speed "up" and "down", and what others sent it."""

    _ways: dict[str, float] = field(default_factory=dict)
    _received: dict[str, float] = field(default_factory=dict)

    def measured(self, way: str, num_bytes: int, seconds: float, *, at_least: bool = False) -> None:
        """`at_least`: in an average, which waits for others, so that the link may be faster.

        A higher value counts at once and a lower one little by little, for the same reason.
        """
        _smooth(self._ways, way, num_bytes, seconds, at_least)

    def received(self, peer: str, num_bytes: int, seconds: float) -> None:
        """In an average, while `peer` sent to others, too."""
        _smooth(self._received, short(peer), num_bytes, seconds)

    def speed(self) -> float | None:
        """None until both ways are measured."""
        return round(min(self._ways.values()), 2) if len(self._ways) == 2 else None

    def senders(self) -> dict[str, float]:
        """The fastest ones, for the note that travels with an offer; by `short` names."""
        fastest = sorted(self._received.items(), key=lambda item: -item[1])[:MOST_RECEIVED]
        return {peer: round(speed, 2) for peer, speed in fastest}


def _smooth(
    known: dict[str, float], name: str, num_bytes: int, seconds: float, at_least: bool = False
) -> None:
    if num_bytes < LEAST_BYTES or seconds <= 0:
        return
    speed = num_bytes * 8e-6 / seconds
    old = known.get(name, speed)
    known[name] = max(speed, old if at_least else old + SMOOTHING * (speed - old))


def believed(notes: Mapping[str, Note]) -> dict[str, float | None]:
    """Speeds by peer, from what all members know alike: who claims what, and who received what.

    In an average a peer sends to all members at the same time, so what they received of it adds up
    to what it has shown. It is believed to do twice that, and in any case as much as the middle of
    the claims; so a fast link comes to carry what it can within a few rounds. Nobody's word adds
    more than that middle, so one friend of a liar cannot vouch for it. None stays None (no claim).
    """
    known = [note.link_mbit_s for note in notes.values() if note.link_mbit_s is not None]
    middle = statistics.median_low(known) if known else 0.0
    speeds: dict[str, float | None] = {}
    for peer, note in notes.items():
        others = (n.received.get(short(peer), 0.0) for name, n in notes.items() if name != peer)
        shown = sum(min(speed, middle) for speed in others)
        claim, limit = note.link_mbit_s, max(middle, BELIEVED * shown)
        speeds[peer] = None if claim is None else min(claim, limit)
    return speeds


def share_out(vector_size: int, speeds: Sequence[float | None]) -> list[int]:
    """How many of `vector_size` elements each member averages; the same on every member.

    0 carries nothing. None (no claim) counts as the mean of the others, as hivemind has it.

    A member with share w of n members moves 1 + (n-2)·w vectors each way: its own to the others,
    and from each of the n-1 others what it averages. The time T of the slowest of those that carry
    something is least when all of them take as long, w = (T·speed - 1)/(n-2), and whoever would
    take longer without any share has none. Of two members either may carry anything.
    """
    given = [speed for speed in speeds if speed]
    mean = statistics.fmean(given) if given else 1.0
    links = [mean if speed is None else speed for speed in speeds]
    others = len(links) - 2
    if others < 1:
        return _whole(vector_size, [float(link > 0) for link in links])
    fastest = sorted((link for link in links if link > 0), reverse=True)
    total, time = 0.0, 0.0
    for count, link in enumerate(fastest, start=1):
        total += link
        if count > 1 and (others + count) / total * link <= 1:
            break
        time = (others + count) / total
    return _whole(vector_size, [max(time * link - 1, 0.0) for link in links])


def _whole(vector_size: int, parts: Sequence[float]) -> list[int]:
    """In proportion; what rounding leaves goes to the largest rests (Hare-Niemeyer)."""
    total = sum(parts)
    exact = [vector_size * part / total for part in parts]
    shares = [int(part) for part in exact]
    rests = sorted(range(len(parts)), key=lambda place: (shares[place] - exact[place], place))
    for place in rests[: vector_size - sum(shares)]:
        shares[place] += 1
    return shares
