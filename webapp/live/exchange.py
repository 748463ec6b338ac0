"""How web processes talk to each other: one channel each, over the channel layer.

Without a broker this process goes on alone; what it missed is in the next partial board.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from trainer.wire import Progress, Role
from webapp.live.board import Standing
from webapp.live.services import HUB_GROUP
from webapp.live.threads import end_if_cancelled

logger = logging.getLogger(__name__)
RETRY_S = 1.0
BROKER_AWAY = (OSError, RedisError, ChannelFull)


class Exchange:
    """`on_message` is called with every message of the watched groups but one's own."""

    def __init__(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        self._on_message = on_message
        self._layer = get_channel_layer()
        self._channel: str | None = None
        self._me = uuid.uuid4().hex
        self._wanted = {HUB_GROUP}
        self._joined: set[str] = set()
        self._is_away = False

    def watch(self, group: str) -> None:
        self._wanted.add(group)

    def unwatch(self, group: str) -> None:
        self._wanted.discard(group)

    async def listen(self) -> None:
        """Receives until cancelled."""
        while self._channel is None:
            try:
                self._channel = await self._layer.new_channel("hub.")
            except BROKER_AWAY as error:
                self._note_away(error)
                await asyncio.sleep(RETRY_S)
        await self.settle()
        while True:
            message = await self._layer.receive(self._channel)
            if message.get("sender") != self._me:
                self._on_message(message)

    async def settle(self) -> None:
        """Joins and leaves groups as wanted; what fails is tried again at the next call."""
        if self._channel is None:
            return
        try:
            for group in self._wanted - self._joined:
                await self._layer.group_add(group, self._channel)
                self._joined.add(group)
            for group in self._joined - self._wanted:
                await self._layer.group_discard(group, self._channel)
                self._joined.discard(group)
        except BROKER_AWAY as error:
            self._note_away(error)
        end_if_cancelled()

    async def send(self, kind: str, **content: Any) -> None:
        message = {"type": kind, "sender": self._me, **content}
        try:
            await self._layer.group_send(HUB_GROUP, message)
        except BROKER_AWAY as error:
            self._note_away(error)
        else:
            self._note_back()
        end_if_cancelled()  # redis-py may take a cancellation for an answer

    def _note_away(self, error: Exception) -> None:
        if not self._is_away:
            logger.warning("the message broker does not answer; going on alone (%s)", error)
            self._is_away = True

    def _note_back(self) -> None:
        if self._is_away:
            logger.warning("the message broker is back")
            self._is_away = False


def pack(standings: Iterable[Standing]) -> list[dict[str, Any]]:
    return [
        {
            "device": one.device,
            "owner": one.owner,
            "row": one.row,
            "name": one.name,
            "role": str(one.role),
            "seen": one.seen,
            "gone": one.gone,
            "progress": one.progress.model_dump(mode="json"),
        }
        for one in standings
    ]


def unpack(packed: Iterable[dict[str, Any]]) -> list[Standing]:
    return [
        Standing(
            **one
            | {"role": Role(one["role"]), "progress": Progress.model_validate(one["progress"])}
        )
        for one in packed
    ]
