"""A site's device websocket, small but real: stores each (session, seq) once and in order."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict

from websockets.asyncio.server import ServerConnection, serve

from trainer.wire import (
    Ack,
    Control,
    Hello,
    Progress,
    Refused,
    Report,
    Welcome,
    Wish,
    read_from_agent,
)


class FakeSite:
    """Runs in a thread. What it stored outlives `stop` and `start` on the same port."""

    def __init__(self) -> None:
        self.stored: dict[str, list[Report]] = defaultdict(list)
        self.hellos: list[Hello] = []
        self.progress: list[tuple[float, Progress]] = []
        self.tokens: list[str] = []
        self.refusal: Refused | None = None
        self.acknowledges = True
        self.num_received = 0
        self.port = 0
        self._sockets: set[ServerConnection] = set()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws/device/"

    def start(self) -> FakeSite:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)))
        self._thread.start()
        assert started.wait(10)
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)

    def send(self, message: Control) -> None:
        for socket in list(self._sockets):
            text = message.model_dump_json()
            asyncio.run_coroutine_threadsafe(socket.send(text), self._loop).result(5)

    def shut(self, code: int) -> None:
        """Closes every connection with `code`."""
        for socket in list(self._sockets):
            asyncio.run_coroutine_threadsafe(socket.close(code), self._loop).result(5)

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with serve(self._talk, "127.0.0.1", self.port) as server:
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            await self._end.wait()

    async def _talk(self, socket: ServerConnection) -> None:
        self.tokens.append(socket.request.headers["Authorization"])
        hello = read_from_agent(await socket.recv())
        assert isinstance(hello, Hello)
        self.hellos.append(hello)
        if self.refusal:
            await socket.send(self.refusal.model_dump_json())
            return
        kept = self.stored[hello.session]
        welcome = Welcome(
            server_time=time.time(), stored_seq=len(kept), control=Control(wish=Wish.RUN)
        )
        await socket.send(welcome.model_dump_json())
        self._sockets.add(socket)
        try:
            async for text in socket:
                message = read_from_agent(text)
                if isinstance(message, Progress):
                    self.progress.append((time.monotonic(), message))
                    continue
                assert isinstance(message, Report)
                self.num_received += 1
                if message.seq == len(kept) + 1:
                    kept.append(message)
                if self.acknowledges:
                    await socket.send(Ack(seq=len(kept)).model_dump_json())
        finally:
            self._sockets.discard(socket)
