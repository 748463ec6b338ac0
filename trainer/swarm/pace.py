"""Slows the look-ups of a peer that waits for a group.

Guards against hivemind 1.1.12, whose matchmaking asks the DHT in a loop without a pause: 75 % of a
core for the peer that waits, and a good part of one for everybody it asks.
"""

from __future__ import annotations

import asyncio
from typing import Any

import hivemind.averaging.matchmaking as matchmaking
from hivemind.averaging.key_manager import GroupKeyManager

FIRST_PAUSE_S = 0.1
GROWTH = 1.8
LONGEST_PAUSE_S = 1.0  # reached with the sixth look-up


class PacedKeyManager(GroupKeyManager):
    """The first look-ups of a round come quickly, so that a full group starts without delay."""

    _pause_s = FIRST_PAUSE_S
    _last_key = ""
    _last_time = 0.0

    async def get_averagers(self, group_key: str, only_active: bool) -> Any:
        clock = asyncio.get_running_loop().time
        if group_key != self._last_key:
            self._last_key, self._pause_s = group_key, FIRST_PAUSE_S
        else:
            await asyncio.sleep(max(0.0, self._last_time + self._pause_s - clock()))
            self._pause_s = min(self._pause_s * GROWTH, LONGEST_PAUSE_S)
        self._last_time = clock()
        return await super().get_averagers(group_key, only_active)


def install() -> None:
    """Before an averager is started: matchmaking makes its key manager by this name."""
    matchmaking.GroupKeyManager = PacedKeyManager
