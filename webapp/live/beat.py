"""What the hub does once a second: frames out, partial boards to other processes, small upkeep."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import DatabaseError

from webapp.collaborations.models import Collaboration
from webapp.devices.services import touch_sessions
from webapp.live.exchange import pack
from webapp.live.facts import Facts, read_facts
from webapp.live.private import offer_private
from webapp.live.rooms import Room, as_text
from webapp.live.services import keep_minute
from webapp.live.threads import in_thread

if TYPE_CHECKING:
    from webapp.live.hub import Hub

logger = logging.getLogger(__name__)
EVERY_S = 1.0
FACTS_EVERY_S = 5.0
TOUCH_EVERY_S = 10.0
OFFERS_AT_A_TIME = 200


async def run(hub: Hub) -> None:
    """Beats until cancelled. A failed beat is logged and the next one comes."""
    loop = asyncio.get_running_loop()
    touched_at = loop.time()
    while True:
        began = loop.time()
        try:
            await beat(hub, time.time())
            if began - touched_at >= TOUCH_EVERY_S:
                touched_at = began
                hub.spawn(_touch(hub))
        except Exception:
            logger.exception("a beat of the live hub failed")
        await asyncio.sleep(max(0.05, EVERY_S - (loop.time() - began)))


async def beat(hub: Hub, now: float) -> None:
    """One frame to everybody."""
    for room in list(hub.rooms.values()):
        _keep_up(hub, room, now)
        text = room.advance(now)
        if text is not None:
            await _offer(room, text, now)
            hub.minutes.add(room.slug, now, room.shown["online"], room.shown["samples_per_s"])
    for minute in hub.minutes.finished(now):
        hub.spawn(hub.writer.call(keep_minute, *minute))
    offer_private(hub.people, hub.rooms, now)
    await hub.exchange.settle()
    boards = {room.slug: pack(room.own_standings()) for room in hub.rooms.values() if room.own}
    if boards:
        await hub.exchange.send("hub.boards", boards=boards)


def _keep_up(hub: Hub, room: Room, now: float) -> None:
    """Asks for facts when due, forgets who left long ago, and the room itself once it is idle."""
    room.board.forget(now)
    linked = {device for device, slug in hub.links if slug == room.slug}
    room.own &= linked | set(room.board.standings)
    if room.is_idle:
        del hub.rooms[room.slug]
        hub.exchange.unwatch(f"collaboration.{room.slug}")
        return
    hub.exchange.watch(f"collaboration.{room.slug}")
    if now >= room.facts_due:
        room.facts_due = now + FACTS_EVERY_S
        hub.spawn(_refresh(room))


async def _refresh(room: Room) -> None:
    """A database that is away leaves the old facts in place."""
    try:
        facts = await in_thread(_read, room.slug)
    except DatabaseError as error:
        logger.warning("the facts of %s could not be read: %s", room.slug, error)
        return
    room.renew(facts)


def _read(slug: str) -> Facts | None:
    collaboration = Collaboration.objects.filter(slug=slug).first()
    return read_facts(collaboration) if collaboration else None


async def _offer(room: Room, text: str, now: float) -> None:
    """The frame to who took the last one; a snapshot to who did not."""
    snapshot = ""
    for count, mailbox in enumerate(list(room.viewers), start=1):
        if mailbox.is_full:
            snapshot = snapshot or as_text(room.snapshot(now) or {})
        mailbox.offer(snapshot if mailbox.is_full else text)
        if count % OFFERS_AT_A_TIME == 0:
            await asyncio.sleep(0)


async def _touch(hub: Hub) -> None:
    """Renews the leases of all sessions heard of since the last time, in one write."""
    alive, hub.alive = hub.alive, set()
    if alive:
        await hub.writer.call(touch_sessions, alive, datetime.now(UTC))
