"""The two websockets of browsers: public frames of a collaboration, private ones of a person."""

from __future__ import annotations

import asyncio
import hashlib
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http.cookie import parse_cookie

from webapp.collaborations.models import Collaboration
from webapp.live.hub import hub
from webapp.live.mailbox import Closing, Mailbox, PrivateMailbox
from webapp.live.sockets import (
    NOT_LOGGED_IN,
    UNKNOWN,
    Gone,
    Receive,
    Scope,
    Send,
    Socket,
    until_one_ends,
)
from webapp.live.threads import in_thread

LOGIN_CHECK_EVERY_S = 60.0


async def view_collaboration(scope: Scope, receive: Receive, send: Send) -> None:
    """`/ws/c/<slug>/`: a snapshot, then frames, until either side closes."""
    socket = Socket(scope, receive, send)
    slug, mailbox = scope["url_route"]["kwargs"]["slug"], Mailbox()
    hub.start()
    try:
        await socket.accept()
        await hub.enter(slug, mailbox)
        await until_one_ends(_deliver(mailbox, socket), _drain(socket))
    except Collaboration.DoesNotExist:
        await socket.close(UNKNOWN, "There is no such collaboration.")
    except Closing as closing:
        await socket.close(closing.code)
    except Gone:
        return
    finally:
        hub.leave(slug, mailbox)


async def view_own_devices(scope: Scope, receive: Receive, send: Send) -> None:
    """`/ws/me/`: the private state of whoever this browser session is logged in as."""
    socket = Socket(scope, receive, send)
    hub.start()
    mailbox = None
    try:
        await socket.accept()
        key = parse_cookie(socket.header(b"cookie")).get(settings.SESSION_COOKIE_NAME, "")
        user_id = await in_thread(logged_in_user, key)
        if user_id is None:
            raise Closing(NOT_LOGGED_IN)
        mailbox = PrivateMailbox(user_id, login_name(key))
        hub.people.add(mailbox)
        await until_one_ends(
            _deliver(mailbox, socket), _drain(socket), _check_login(key, user_id, mailbox)
        )
    except Closing as closing:
        await socket.close(closing.code)
    except Gone:
        return
    finally:
        hub.people.discard(mailbox)


async def _deliver(mailbox: Mailbox, socket: Socket) -> None:
    while True:
        await socket.send(await mailbox.take())


async def _drain(socket: Socket) -> None:
    """Browsers have nothing to say here; what they send is dropped. Ends by Gone."""
    while True:
        await socket.receive()


async def _check_login(key: str, user_id: int, mailbox: Mailbox) -> None:
    """A log-out closes at once (`hub.log_out`); this finds expiry, bans and changed passwords."""
    while True:
        await asyncio.sleep(LOGIN_CHECK_EVERY_S)
        if await in_thread(logged_in_user, key) != user_id:
            mailbox.close(NOT_LOGGED_IN)


def logged_in_user(session_key: str) -> int | None:
    """Who is logged in with this session, as the pages' own middleware would find."""
    if not session_key:
        return None
    store: Any = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(SimpleNamespace(session=store))  # type: ignore[arg-type]
    return user.pk if user.is_authenticated and user.is_active else None


def login_name(session_key: str) -> str:
    """Names a browser session to other processes without giving its key away."""
    return hashlib.sha256(session_key.encode()).hexdigest()
