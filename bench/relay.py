"""Carries TCP connections out of a namespace that has no link, over that of another one.

    python -m bench.relay INNER OUTER ADDRESS... [--delay-s 0.1] [--stall-every-s 20] …

Takes connections to ADDRESS:4000 inside INNER and dials the same from OUTER. Bytes may be late by
`--delay-s` each way, stand still for 2 s every so often, and all connections may be reset.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from contextlib import suppress

from bench.netns import PORT, enter, inside

CHUNK_BYTES = 1 << 16
MOST_UNDERWAY = 64  # chunks
STALL_S = 2.0


class Relay:
    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = writer.get_extra_info("sockname")[0]
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(there, PORT)
            self._writers |= {writer, far_writer}
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        self._writers.discard(writer)
        writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        underway: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(MOST_UNDERWAY)
        arriving = asyncio.create_task(self._deliver(underway, writer))
        now = asyncio.get_running_loop().time
        with suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                await underway.put((now() + self._delay_s, chunk))
        await underway.put((now() + self._delay_s, b""))
        await arriving
        self._writers.discard(writer)

    async def _deliver(
        self, underway: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        now = asyncio.get_running_loop().time
        while True:
            due, chunk = await underway.get()
            await asyncio.sleep(max(due - now(), 0.0))
            await self._open.wait()
            with suppress(OSError):
                writer.write(chunk)
                await writer.drain()
            if not chunk:
                writer.close()
                return

    async def stall(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            self._open.clear()
            await asyncio.sleep(STALL_S)
            self._open.set()

    async def reset(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            for writer in list(self._writers):
                writer.transport.abort()


async def serve(options: argparse.Namespace) -> None:
    with inside(options.inner):
        listening = [socket.create_server((there, PORT)) for there in options.addresses]
    enter(options.outer)
    relay = Relay(options.delay_s)
    servers = [await asyncio.start_server(relay.carry, sock=one) for one in listening]
    troubles = []
    if options.stall_every_s:
        troubles.append(relay.stall(options.stall_every_s))
    if options.reset_every_s:
        troubles.append(relay.reset(options.reset_every_s))
    await asyncio.gather(*(server.serve_forever() for server in servers), *troubles)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("inner")
    parser.add_argument("outer")
    parser.add_argument("addresses", nargs="+")
    for trouble in ("delay", "stall-every", "reset-every"):
        parser.add_argument(f"--{trouble}-s", type=float, default=0.0)
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(serve(parse()))
