"""A real web process: it ends in time with sockets open, and shows no ghosts when it is back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager

import pytest
from channels.db import database_sync_to_async
from django.db import connection
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.live.agents import receipt
from tests.ports import free_port
from trainer.wire import WIRE_VERSION, Activity, Hello, Progress, Report
from webapp.credit.models import Receipt

START_S = 30.0


def database_url() -> str:
    """Of the database this test runs on, for another process."""
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return os.environ["DATABASE_URL"].rsplit("/", 1)[0] + f"/{name}"


@contextmanager
def web_process(port: int):
    """uvicorn with the flags of production; killed at the end if it still runs."""
    flags = (
        f"--port {port} --lifespan off --timeout-graceful-shutdown 4 "
        "--ws-per-message-deflate false --no-access-log --log-level warning"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "webapp.asgi:application", *flags.split()],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": database_url(),
            "SITE_URL": f"http://127.0.0.1:{port}",
        },
    )
    deadline = time.monotonic() + START_S
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, "the web process ended"
                assert time.monotonic() < deadline, "the web process never listened"
                time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def page(port: int, slug: str = "demo"):
    """A browser's websocket for the page of a collaboration."""
    return connect(f"ws://127.0.0.1:{port}/ws/c/{slug}/", origin=f"http://127.0.0.1:{port}")


async def agent_socket(port: int, token: str, session: str):
    agent = await connect(
        f"ws://127.0.0.1:{port}/ws/device/",
        additional_headers={"Authorization": f"Bearer {token}"},
    )
    hello = Hello(version=WIRE_VERSION, agent_version="test", session=session, collaboration="demo")
    await agent.send(hello.model_dump_json())
    welcome = json.loads(await agent.recv())
    assert welcome["kind"] == "welcome", welcome
    return agent, welcome


async def online_seen_by(port: int, frames: int) -> list[int]:
    """How many peers a page shows, frame by frame."""
    shown: dict = {}
    online = []
    async with page(port) as viewer:
        for _ in range(frames):
            shown |= json.loads(await viewer.recv())
            online.append(shown["online"])
    return online


async def test_b05_with_200_idle_sockets_a_sigterm_ends_the_process_within_10_s(token):
    port = free_port()
    with web_process(port) as process:
        viewers = [await page(port) for _ in range(200)]
        await asyncio.gather(*(viewer.recv() for viewer in viewers))
        process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(process.wait, 10)
        assert code in (0, -signal.SIGTERM)
        codes = set()
        for viewer in viewers:
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    await viewer.recv()
            codes.add(closed.value.rcvd.code if closed.value.rcvd else None)
        assert codes == {1012}


async def test_b05_a_viewer_that_stopped_reading_does_not_hold_up_the_end(token):
    port = free_port()
    with web_process(port) as process:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(
            f"GET /ws/c/demo/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Origin: http://127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        assert b" 101 " in await reader.readline()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) in (0, -signal.SIGTERM)
        writer.close()


async def test_b04_after_kill_9_nothing_is_lost_or_doubled_and_no_ghost_is_shown(token):
    port, session = free_port(), uuid.uuid4().hex
    with web_process(port) as process:
        agent, _ = await agent_socket(port, token, session)
        for seq in range(1, 21):
            await agent.send(Report(seq=seq, at=time.time(), body=receipt(seq)).model_dump_json())
        await agent.recv()  # at least one acknowledgement, then the process dies
        process.kill()
        process.wait()
    with web_process(port):
        assert await online_seen_by(port, frames=1) == [0]
        agent, _ = await agent_socket(port, token, session)
        for seq in range(1, 31):
            await agent.send(Report(seq=seq, at=time.time(), body=receipt(seq)).model_dump_json())
        while True:
            message = json.loads(await agent.recv())
            if message["kind"] == "ack" and message["seq"] == 30:
                break
        await agent.send(Progress(round=31, activity=Activity.TRAINING).model_dump_json())
        assert (await online_seen_by(port, frames=3))[-1] == 1
        await agent.close()
    seqs = await database_sync_to_async(
        lambda: list(Receipt.objects.values_list("seq", flat=True))
    )()
    assert sorted(seqs) == list(range(1, 31))


async def test_b06_a_real_server_answers_403_to_a_strange_origin(token):
    port = free_port()
    with web_process(port):
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{port}/ws/c/demo/", origin="https://evil.example")
        assert refused.value.response.status_code == 403
