"""How an agent is let in: token, hello, version, session. Every refusal is in words."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from django.db import DatabaseError
from pydantic import ValidationError

from trainer.wire import (
    MAX_MESSAGE_BYTES,
    Control,
    Hello,
    LeaveCause,
    Progress,
    Refused,
    Report,
    read_from_agent,
    version_problem,
)
from webapp.collaborations.control import current_control
from webapp.collaborations.models import Collaboration
from webapp.core.errors import UserError
from webapp.devices.models import Device, Session
from webapp.devices.selectors import NO_SUCH_DEVICE, START_ANEW, device_by_token
from webapp.live import sockets
from webapp.live.hub import hub
from webapp.live.services import join
from webapp.live.sockets import Socket
from webapp.live.threads import in_thread

HELLO_WITHIN_S = 10.0
NEW_LAUNCHER = "Download a new launcher on the site's Join page."


class Rejected(Exception):
    """The socket is closed with `code` after the agent was told why."""

    def __init__(
        self,
        code: int,
        reason: str,
        next_step: str = "",
        *,
        retry_after_s: float | None = None,
        cause: LeaveCause | None = None,
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.message = Refused(
            reason=reason[:300], next_step=next_step, retry_after_s=retry_after_s, cause=cause
        )


@dataclass(frozen=True)
class Guest:
    """An agent that was let in."""

    device: Device
    collaboration: Collaboration
    session: Session
    hello: Hello
    control: Control


async def greet(socket: Socket) -> Guest:
    """Raises Rejected, and sockets.Gone."""
    try:
        device = await _device(socket)
        hello = await _hello(socket)
        collaboration = await Collaboration.objects.filter(slug=hello.collaboration).afirst()
        if collaboration is None:
            raise Rejected(
                sockets.UNKNOWN,
                f"There is no collaboration {hello.collaboration} on this site.",
                "Choose another one on the site.",
            )
        control = await in_thread(current_control, device, collaboration)
        if control.cause in (LeaveCause.REVOKED, LeaveCause.BANNED):
            raise Rejected(sockets.FORBIDDEN, control.reason, cause=control.cause)
        session, event = await hub.writer.call(join, device, collaboration, hello)
    except UserError as error:
        raise Rejected(sockets.FORBIDDEN, error.message, error.next_step) from error
    except DatabaseError as error:
        raise Rejected(
            sockets.TRY_AGAIN,
            "The site's database does not answer.",
            "The agent tries again by itself.",
            retry_after_s=5.0,
        ) from error
    hub.tell_event(collaboration.slug, event)
    return Guest(device, collaboration, session, hello, control)


async def _device(socket: Socket) -> Device:
    """By the bearer token alone: cookies and Origin say nothing about an agent."""
    scheme, _, token = socket.header(b"authorization").partition(" ")
    known = scheme.lower() == "bearer" and token
    device = await in_thread(device_by_token, token.strip()) if known else None
    if device is None:
        raise Rejected(
            sockets.NOT_LOGGED_IN,
            NO_SUCH_DEVICE,
            START_ANEW,
            cause=LeaveCause.REVOKED,
        )
    return device


async def _hello(socket: Socket) -> Hello:
    try:
        hello = read(await asyncio.wait_for(socket.receive(), HELLO_WITHIN_S))
    except TimeoutError as error:
        raise Rejected(
            sockets.TOO_SLOW,
            f"No hello came within {HELLO_WITHIN_S:.0f} s.",
            "The agent tries again by itself.",
            retry_after_s=5.0,
        ) from error
    if not isinstance(hello, Hello):
        raise Rejected(sockets.MALFORMED, f"The first message was {hello.kind}, not hello.")
    if problem := version_problem(hello.version):
        raise Rejected(sockets.MALFORMED, f"Please update: {problem}", NEW_LAUNCHER)
    return hello


def read(text: str | bytes) -> Hello | Progress | Report:
    """One message of an agent. Raises Rejected on anything else."""
    size_bytes = len(text) if isinstance(text, bytes) else len(text.encode())
    if size_bytes > MAX_MESSAGE_BYTES:
        raise Rejected(
            sockets.TOO_LARGE,
            f"A message of {size_bytes:,} bytes came; at most {MAX_MESSAGE_BYTES:,} are allowed.",
        )
    try:
        return read_from_agent(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        where = f" at {place}" if place else ""
        raise Rejected(
            sockets.MALFORMED,
            f"The site could not read a message{where}: {first['msg']}.",
            "If this happens again, update: " + NEW_LAUNCHER,
        ) from error
