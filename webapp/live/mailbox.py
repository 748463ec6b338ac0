"""One viewer's mailbox with one slot: who reads slowly skips frames and holds up nobody."""

from __future__ import annotations

import asyncio


class Closing(Exception):
    """The site ends this connection with `code`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Mailbox:
    def __init__(self) -> None:
        self._slot: str | None = None
        self._closing: int | None = None
        self._woken = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """The last text was not taken yet, so the next one replaces it."""
        return self._slot is not None

    def offer(self, text: str) -> None:
        self._slot = text
        self._woken.set()

    def close(self, code: int) -> None:
        self._closing = code
        self._woken.set()

    async def take(self) -> str:
        """Waits for the newest text. Raises Closing."""
        await self._woken.wait()
        self._woken.clear()
        if self._closing is not None:
            raise Closing(self._closing)
        assert self._slot is not None
        text, self._slot = self._slot, None
        return text


class PrivateMailbox(Mailbox):
    """Of one logged-in browser session; `login` is the hash of its session key."""

    def __init__(self, user_id: int, login: str) -> None:
        super().__init__()
        self.user_id, self.login = user_id, login
        self.shown = ""
        self.shown_at = 0.0
        self.seq = 0
