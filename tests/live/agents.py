"""Agents, viewers and condition waits for tests of the live area."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.conf import settings
from django.test import Client

from trainer.wire import (
    WIRE_VERSION,
    Ack,
    Activity,
    Body,
    Hello,
    Progress,
    Receipt,
    Refused,
    Report,
    VerdictSummary,
    Welcome,
    read_from_site,
)
from webapp.asgi import application

ORIGIN = "http://testserver"
DEADLINE_S = 15.0


async def eventually(condition: Callable[[], Any], *, within_s: float = DEADLINE_S) -> Any:
    """The first true answer of `condition`, a function that may read the database."""
    deadline = time.monotonic() + within_s
    while not (answer := await database_sync_to_async(condition)()):
        assert time.monotonic() < deadline, f"never came true: {condition}"
        await asyncio.sleep(0.02)
    return answer


def verdict(round_: int, **fields: Any) -> VerdictSummary:
    values: dict[str, Any] = {"outcome": "clean", "members": 1, "samples": 64, "tokens": 640}
    return VerdictSummary(round=round_, **(values | {"loss": 4.0} | fields))


def receipt(round_: int, *, samples: int = 64, **fields: Any) -> Receipt:
    return Receipt(
        round=round_,
        samples=samples,
        tokens=10 * samples,
        accepted=True,
        compute_s=1.0,
        verdict=verdict(round_, **fields),
    )


def cookie_of(client: Client) -> str:
    """The Cookie header of a test client that is logged in."""
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={client.cookies[name].value}"


class Talker:
    """One websocket to the site, as its server would drive it."""

    def __init__(self, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        self.scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": headers,
            "subprotocols": [],
        }
        self.socket = ApplicationCommunicator(application, self.scope)

    async def connect(self) -> bool:
        await self.socket.send_input({"type": "websocket.connect"})
        return (await self._next())["type"] == "websocket.accept"

    async def _next(self) -> dict[str, Any]:
        return await self.socket.receive_output(timeout=DEADLINE_S)

    async def say_text(self, text: str) -> None:
        await self.socket.send_input({"type": "websocket.receive", "text": text})

    async def text(self) -> str:
        message = await self._next()
        assert message["type"] == "websocket.send", message
        return message["text"]

    async def close_code(self) -> int:
        """Reads on until the site closes."""
        while (message := await self._next())["type"] != "websocket.close":
            pass
        return message["code"]

    async def leave(self) -> None:
        """Breaks off, as a cut connection does."""
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1006})
        await self.socket.wait(timeout=DEADLINE_S)


class Agent(Talker):
    """Speaks as a device does. `session` survives reconnects: hand it to the next Agent."""

    def __init__(self, token: str, session: str = "", headers: list[Any] | None = None) -> None:
        bearer = [(b"authorization", f"Bearer {token}".encode())]
        super().__init__("/ws/device/", bearer + (headers or []))
        self.session = session or uuid.uuid4().hex

    def hello(self, slug: str = "demo", **fields: Any) -> Hello:
        values: dict[str, Any] = {"version": WIRE_VERSION, "agent_version": "test"}
        return Hello(session=self.session, collaboration=slug, **(values | fields))

    async def join(self, slug: str = "demo", **fields: Any) -> Welcome:
        assert await self.connect()
        await self.say(self.hello(slug, **fields))
        welcome = await self.hear()
        assert isinstance(welcome, Welcome), welcome
        return welcome

    async def say(self, message: Any) -> None:
        await self.say_text(message.model_dump_json())

    async def hear(self) -> Any:
        return read_from_site(await self.text())

    async def refusal(self) -> Refused:
        """The site's word that it will not have this agent; then it closes."""
        message = await self.hear()
        assert isinstance(message, Refused), message
        await self.close_code()
        return message

    async def report(self, seq: int, body: Body) -> None:
        await self.say(Report(seq=seq, at=time.time(), body=body))

    async def acked(self, seq: int) -> None:
        """Waits for the acknowledgement of `seq`."""
        while True:
            message = await self.hear()
            if isinstance(message, Ack):
                assert message.seq <= seq
                if message.seq == seq:
                    return

    async def train(self, round_: int, *, samples: int, loss: float, **fields: Any) -> None:
        tokens = 10 * samples
        progress = {"activity": Activity.TRAINING, "samples_per_s": 10.0, "tokens": tokens}
        await self.say(
            Progress(round=round_, samples=samples, loss_sum=loss * tokens, **(progress | fields))
        )


class Viewer(Talker):
    """A browser with the page of one collaboration open; `state` is what it shows."""

    def __init__(self, path: str = "/ws/c/demo/", cookie: str = "", origin: str = ORIGIN) -> None:
        headers = [(b"origin", origin.encode())] if origin else []
        super().__init__(path, headers + ([(b"cookie", cookie.encode())] if cookie else []))
        self.state: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.rounds: dict[int, dict[str, Any]] = {}

    async def frame(self) -> dict[str, Any]:
        frame = json.loads(await self.text())
        if frame["kind"] == "snapshot":
            self.state = frame
        else:
            assert frame["kind"] != "frame" or frame["seq"] == self.state["seq"] + 1
            self.events += frame.pop("new_events", [])
            self.rounds |= {one["round"]: one for one in frame.pop("new_rounds", [])}
            self.state = {**self.state, **frame}
        return frame

    async def sees(self, condition: Callable[[Viewer], Any]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not (self.state and condition(self)):
            assert time.monotonic() < deadline, f"never seen; last: {self.state}"
            await self.frame()
