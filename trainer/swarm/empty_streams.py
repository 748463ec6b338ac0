"""A stream that ends before it has said what it is for is passed over quietly.

Guards against hivemind 1.1.12, whose p2pd hands such streams on (the other side gave up or died
meanwhile): the reader of their first message raises in a task nobody waits for, and the log fills
with tracebacks of a fault that is none.
"""

from __future__ import annotations

import asyncio
import logging

from hivemind.p2p.p2p_daemon_bindings.control import ControlClient

log = logging.getLogger(__name__)
_handle = ControlClient._handler


async def handle_stream(
    client: ControlClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        await _handle(client, reader, writer)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        log.debug("a stream ended before its first message")
        writer.close()


def install() -> None:
    """Before the DHT is started: its process and the averager's inherit it."""
    ControlClient._handler = handle_stream
