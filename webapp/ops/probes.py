"""Whether a part of the site answers yet."""

from __future__ import annotations

import asyncio
from pathlib import Path

from webapp.ops.program import Probe

ANSWER_S = 5.0


def answers_ping(socket: Path) -> Probe:
    """Valkey on a unix socket says PONG."""

    async def probe() -> bool:
        reader, writer = await asyncio.open_unix_connection(socket)
        try:
            writer.write(b"PING\r\n")
            return await reader.readline() == b"+PONG\r\n"
        finally:
            writer.close()

    return _false_on_trouble(probe)


def answers_http(host: str, port: int, path: str) -> Probe:
    """The web process answers 200 at `path`."""

    async def probe() -> bool:
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            return b" 200 " in await reader.readline()
        finally:
            writer.close()

    return _false_on_trouble(probe)


def _false_on_trouble(probe: Probe) -> Probe:
    async def answer() -> bool:
        try:
            return await asyncio.wait_for(probe(), ANSWER_S)
        except (OSError, TimeoutError):
            return False

    return answer
