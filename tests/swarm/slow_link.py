"""A slow way to a site: passes everything on, but of a checkpoint only a little at a time."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

HEAD_BYTES = 1 << 16
FIRST_BYTES = 300_000
BLOCK_BYTES = 512


class SlowLink:
    """To the site at `port`; runs in a thread. `asked`: the heads of requests for checkpoints."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.asked: list[str] = []
        self.is_slow = True
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)))
        self._thread.start()
        assert started.wait(10)
        self.url = f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with await asyncio.start_server(self._pass_on, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            await self._end.wait()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            head = await reader.read(HEAD_BYTES)
            is_checkpoint = b".safetensors " in head.split(b"\r\n")[0]
            if is_checkpoint:
                self.asked.append(head.decode())
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
            back.write(head)
            there_and_back = _copy(reader, back), self._answer(there, writer, is_checkpoint)
            await asyncio.gather(*there_and_back)

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_checkpoint: bool
    ) -> None:
        if is_checkpoint and self.is_slow:
            writer.write(await reader.readexactly(FIRST_BYTES))
            while block := await reader.read(BLOCK_BYTES):
                writer.write(block)
                await writer.drain()
                await asyncio.sleep(0.5)
        await _copy(reader, writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while block := await reader.read(HEAD_BYTES):
        writer.write(block)
        await writer.drain()
    writer.close()
