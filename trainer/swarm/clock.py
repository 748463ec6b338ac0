"""The swarm's clock is the site's: a device's own may be wrong, and may be put right meanwhile.

Guards against hivemind 1.1.12, which compares the local clocks of peers: 1.5 s off makes a peer
useless in matchmaking, 3 s off shuts it out of the DHT.

All that waits or tells the time in the round loop does it here, so that the simulator can put
simulated time in its place.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol

LOOK_EVERY_S = 0.25
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while asleep
_offset_s: float | None = None


def _since_boot() -> float:
    return time.clock_gettime(_SINCE_BOOT)


class Clock(Protocol):
    def now(self) -> float:
        """Site time in seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""

    def sleep(self, seconds: float) -> None: ...


class DeviceClock:
    """From `follow_site` on, no set clock moves its `now`."""

    def now(self) -> float:
        return time.time() if _offset_s is None else _since_boot() + _offset_s

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


_clock: Clock = DeviceClock()


def now() -> float:
    """Site time in seconds since the epoch."""
    return _clock.now()


def monotonic() -> float:
    return _clock.monotonic()


def sleep(seconds: float) -> None:
    _clock.sleep(seconds)


def sleep_while(is_wanted: Callable[[], bool], seconds: float) -> None:
    """As long at most; asks several times a second."""
    until = monotonic() + seconds
    while is_wanted() and monotonic() < until:
        sleep(min(seconds, LOOK_EVERY_S))


def follow(clock: Clock) -> Clock:
    """From now on everybody in this process goes by `clock`; returns the one before it."""
    global _clock
    before, _clock = _clock, clock
    return before


def follow_site(offset_s: float) -> None:
    """Site time minus device time. Call before the DHT is made: its processes are forked."""
    global _offset_s
    _offset_s = time.time() + offset_s - _since_boot()
    import hivemind.averaging.averager
    import hivemind.dht.protocol
    import hivemind.utils.auth  # noqa: F401 - loaded so that the loop below reaches them

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "hivemind" and hasattr(module, "get_dht_time"):
            vars(module)["get_dht_time"] = now
