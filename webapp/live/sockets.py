"""A websocket as ASGI gives it. Channels' consumers are not used: each would subscribe to a channel
of its own at the broker, and refuse the socket while the broker is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MALFORMED = 4400
NOT_LOGGED_IN = 4401
FORBIDDEN = 4403
UNKNOWN = 4404
TOO_SLOW = 4408
REPLACED = 4409
TOO_LARGE = 1009
TRY_AGAIN = 1013


class Gone(Exception):
    """The other side closed the socket, or broke off."""


class Socket:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self._receive, self._send = scope, receive, send

    def header(self, name: bytes) -> str:
        """The value of a header, empty where it is missing."""
        values = [value for key, value in self.scope["headers"] if key.lower() == name]
        return values[0].decode("latin1") if values else ""

    async def accept(self) -> None:
        """Raises Gone."""
        message = await self._receive()
        if message["type"] != "websocket.connect":
            raise Gone
        await self._send({"type": "websocket.accept"})

    async def close_before_accepting(self, code: int) -> None:
        """The server answers the handshake with HTTP 403. Raises Gone."""
        message = await self._receive()
        if message["type"] != "websocket.connect":
            raise Gone
        await self.close(code)

    async def receive(self) -> str | bytes:
        """Raises Gone."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise Gone
        text = message.get("text")
        return text if text is not None else message.get("bytes") or b""

    async def send(self, text: str) -> None:
        """Raises Gone, also where the server says so by an OSError or by refusing to send."""
        try:
            await self._send({"type": "websocket.send", "text": text})
        except (OSError, RuntimeError) as error:
            raise Gone from error

    async def close(self, code: int, reason: str = "") -> None:
        try:
            await self._send({"type": "websocket.close", "code": code, "reason": reason[:100]})
        except (OSError, RuntimeError):
            return  # closed already


async def until_one_ends(*works: Coroutine[Any, Any, Any]) -> None:
    """Runs all, stops the others when the first one ends, and raises what that one raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def refuse_politely(scope: Scope, receive: Receive, send: Send) -> None:
    """For paths that have no websocket: accepts and closes, so that a browser can read the code."""
    socket = Socket(scope, receive, send)
    try:
        await socket.accept()
        await socket.close(UNKNOWN, "There is no websocket at this address.")
    except Gone:
        return
