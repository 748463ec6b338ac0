"""How far this machine's clock is from the site's, and in words."""

from __future__ import annotations

import time

from trainer.grant import Clock
from trainer.launcher import web

NUM_LOOKS = 3
NOTICED_S = 1.5  # peers further apart than this do not find each other


def offset_s(site: str, *, timeout_s: float = web.TIMEOUT_S) -> float:
    """Site time minus this machine's, from the quickest of a few looks.

    Raises web.Unreachable, or web.Refusal when something else than the site answers.
    """
    looks = []
    for _ in range(NUM_LOOKS):
        before, sent = time.time(), time.monotonic()
        reply = web.call(f"{site}/api/v1/clock", timeout_s=timeout_s)
        took_s = time.monotonic() - sent
        try:
            now = Clock.model_validate_json(reply).now
        except ValueError as error:
            raise web.Refusal(200, f"{site} does not answer like a Potluck site.") from error
        looks.append((took_s, now - (before + took_s / 2)))
    return min(looks)[1]


def in_words(offset: float) -> str:
    """ "your clock is 11 h 59 m ahead of the site's"."""
    side = "behind" if offset > 0 else "ahead of"
    return f"your clock is {_duration(abs(offset))} {side} the site's"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} m"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} m"
    return f"{minutes // (24 * 60)} d {minutes // 60 % 24} h"
