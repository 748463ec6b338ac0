"""The swarm's clock is the site's: a device's own may be wrong, and may be put right meanwhile.

Guards against hivemind 1.1.12, which compares the local clocks of peers: 1.5 s off makes a peer
useless in matchmaking, 3 s off shuts it out of the DHT.
"""

from __future__ import annotations

import sys
import time

_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while asleep
_offset_s: float | None = None


def _since_boot() -> float:
    return time.clock_gettime(_SINCE_BOOT)


def now() -> float:
    """Site time in seconds since the epoch; from `follow_site` on, no set clock moves it."""
    return time.time() if _offset_s is None else _since_boot() + _offset_s


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
