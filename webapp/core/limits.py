"""Rate limits: how often one device or address may ask within a window of time."""

from __future__ import annotations

import logging
import math
import time

from django.core.cache import cache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


def seconds_to_wait(key: str, *, limit: int, window_s: int) -> int:
    """0: go ahead (this call is counted); otherwise after how many seconds to ask again.

    Without a cache nothing is limited: a broken broker must not shut the site.
    """
    name = f"limit:{key}:{int(time.time() // window_s)}"
    try:
        cache.add(name, 0, timeout=window_s)
        used = cache.incr(name)
    except (RedisError, OSError, ValueError) as error:  # ValueError: it expired in between
        logger.warning("rate limit of %s not checked: %s", key.split(":")[0], error)
        return 0
    return 0 if used <= limit else window_ends_in(window_s)


def window_ends_in(window_s: int) -> int:
    """Whole seconds until the present window is over, at least 1."""
    return math.ceil(window_s - time.time() % window_s)
