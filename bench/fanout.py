"""CPU of one web process with 2,000 viewers of one collaboration, at one update a second.

Eight agents report their progress once a second, so every frame carries changes. Compared with
one channel-layer group of 2,000 channels that gets a message of the same size.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from typing import Any
from uuid import uuid4

from bench.stage import Web, site, web_process

NUM_VIEWERS = 2000
NUM_AGENTS = 8
SECONDS = 15
GOAL = 10.0
DELIVERED = 0.98
CONNECT_AT_ONCE = 50


class Viewer(asyncio.Protocol):
    """Counts the frames of one websocket; as little work as can be, it shares the machine."""

    def __init__(self) -> None:
        self.open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.frames = self.frame_bytes = 0
        self._rest = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if not self.open.done():
            head, end, self._rest = self._rest.partition(b"\r\n\r\n")
            if not end:
                self._rest = head
                return
            if b" 101 " not in head:
                self.open.set_exception(ConnectionError(head.decode()))
                return
            self.open.set_result(None)
        while (size := frame_size(self._rest)) is not None:
            self.frames += self._rest[0] & 15 == 1
            self.frame_bytes = size
            self._rest = self._rest[size:]


def frame_size(data: bytes) -> int | None:
    """Bytes of the whole first frame (a server does not mask); None while it is incomplete."""
    if len(data) < 2:
        return None
    length, head = data[1] & 127, 2
    if length == 126:
        length, head = int.from_bytes(data[2:4], "big"), 4
    elif length == 127:
        length, head = int.from_bytes(data[2:10], "big"), 10
    return head + length if len(data) >= head + length else None


async def open_viewer(port: int, path: str) -> Viewer:
    _, viewer = await asyncio.get_running_loop().create_connection(Viewer, "127.0.0.1", port)
    key = base64.b64encode(os.urandom(16)).decode()
    viewer.transport.write(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
        f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    await viewer.open
    return viewer


async def cpu_with_viewers(web: Web, path: str, send_update: Any) -> dict[str, float]:
    """Per cent of a core over SECONDS with an update each, and the part of frames delivered."""
    viewers: list[Viewer] = []
    for _ in range(0, NUM_VIEWERS, CONNECT_AT_ONCE):
        opening = (open_viewer(web.port, path) for _ in range(CONNECT_AT_ONCE))
        viewers += await asyncio.gather(*opening)
    for _ in range(3):  # until the connecting is digested
        await send_update()
        await asyncio.sleep(1)
    before, cpu_s, began = sum(each.frames for each in viewers), web.cpu_s(), time.monotonic()
    for second in range(1, SECONDS + 1):
        await send_update()
        await asyncio.sleep(max(0, began + second - time.monotonic()))
    span_s = time.monotonic() - began
    result = {
        "cpu_percent": round(100 * (web.cpu_s() - cpu_s) / span_s, 1),
        "delivered": (sum(each.frames for each in viewers) - before) / (NUM_VIEWERS * span_s),
        "frame_bytes": viewers[0].frame_bytes,
    }
    for viewer in viewers:
        viewer.transport.abort()
    return result


async def measure_hub(tokens: list[str]) -> dict[str, float]:
    from websockets.asyncio.client import connect

    from trainer.wire import WIRE_VERSION, Activity, Hello, Progress

    with web_process() as web:
        agents = []
        for token in tokens:
            header = {"Authorization": f"Bearer {token}"}
            agent = await connect(
                f"ws://127.0.0.1:{web.port}/ws/device/", additional_headers=header
            )
            hello = Hello(
                version=WIRE_VERSION,
                agent_version="bench",
                session=uuid4().hex,
                collaboration="bench",
            )
            await agent.send(hello.model_dump_json())
            agents.append(agent)
        count = 0

        async def send_update() -> None:
            nonlocal count
            count += 1
            for number, agent in enumerate(agents):
                progress = Progress(
                    round=7,
                    samples=count * 8 + number,
                    tokens=count * 800,
                    loss_sum=count * 3200.0 - number,
                    samples_per_s=30 + number + count / 7,
                    activity=Activity.TRAINING,
                )
                await agent.send(progress.model_dump_json())

        return await cpu_with_viewers(web, "/ws/c/bench/", send_update)


async def measure_groups(frame_bytes: float) -> dict[str, float]:
    from channels.layers import get_channel_layer

    frame = {"text": "x" * int(frame_bytes)}

    async def send_update() -> None:
        await get_channel_layer().group_send("naive", {"type": "new.frame", "frame": frame})

    with web_process("bench.naive:application") as web:
        return await cpu_with_viewers(web, "/viewer/", send_update)


def main() -> dict[str, Any]:
    with site():
        from tests.factories import make_collaboration, make_device, make_user

        make_collaboration("bench", state="running")
        tokens = [make_device(make_user())[1] for _ in range(NUM_AGENTS)]
        hub = asyncio.run(measure_hub(tokens))
        groups = asyncio.run(measure_groups(hub["frame_bytes"]))
    print(json.dumps({"hub": hub, "groups": groups}))
    return {
        "value": hub["cpu_percent"],
        "unit": f"% of a core, {NUM_VIEWERS} viewers",
        "goal": f"<= {GOAL:.0f}, every frame delivered",
        "met": hub["cpu_percent"] <= GOAL and hub["delivered"] >= DELIVERED,
        "compared_with": {
            "one_group_of_all_viewers_percent": groups["cpu_percent"],
            "delivered": round(hub["delivered"], 3),
            "frame_bytes": hub["frame_bytes"],
        },
    }
