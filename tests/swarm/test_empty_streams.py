"""A connection that is closed before its first message leaves no traceback behind."""

from __future__ import annotations

import asyncio
import logging

from hivemind.p2p.p2p_daemon_bindings.control import ControlClient

from trainer.swarm import empty_streams


async def test_a_stream_that_ends_at_once_is_passed_over(tmp_path, caplog):
    empty_streams.install()
    client = object.__new__(ControlClient)
    client.handlers = {}
    path = str(tmp_path / "listen.sock")
    handled = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await client._handler(reader, writer)
        finally:
            handled.set()

    client._read_task = client._write_task = None
    with caplog.at_level(logging.ERROR, logger="asyncio"):
        async with await asyncio.start_unix_server(serve, path=path):
            _, writer = await asyncio.open_unix_connection(path)
            writer.close()
            await asyncio.wait_for(handled.wait(), 60)
    assert caplog.records == []
