"""Everything live in this web process: boards, viewers, agents; one frame a second to all.

What a browser gets on `/ws/c/<slug>/`
--------------------------------------
The first message is a snapshot, the same document as `GET /api/v1/collaborations/<slug>`:

    {"kind": "snapshot", "seq": 812, "at": 1764439408.2,      # site time, seconds
     "slug": "demo", "title": "Demo", "state": "running", "state_reason": "",
     "round": 57,                 # the one being trained now
     "loss": 3.41,                # of that round so far, mean per target token; null: none yet
     "samples": 400, "target": 512, "samples_per_s": 88.2,
     "least": 1,                  # devices whose results a round needs
     "peers": 3,                  # training peers in step (within one round), senders included
     "senders": 1, "behind": 1, "online": 4, "coordinators": 1, "expired": 0,
     "members": [{"id": "9f2c01ab", "name": "ada", "role": "peer", "activity": "training",
                  "reason": "", "round": 57, "in_round": true, "samples": 120,
                  "samples_per_s": 30.1, "loss": 3.4,
                  "link_mbit_s": 48.2,      # as measured, the smaller of up and down, or null
                  "share": 0.38}],          # of the last average, that it carried; or null
                                            # members: the 100 fastest of `online`
     "last_round": {"round": 56, "outcome": "clean", "members": 3, "samples": 520,
                    "tokens": 65000, "loss": 3.45, "held_out_loss": null, "duration_s": 6.1,
                    "num_lost": 0, "reason": "", "at": 1764439402.0,          # or null
                    "asked": null},    # so many peers were chosen to train; null: all might
     "checkpoint": {"round": 50, "loss": 3.49, "at": 1764439360.1, "size_bytes": 13500000,
                    "sha256": "…", "url": "/artifacts/…",         # the newest, or null
                    "adapter_url": ""},            # or that of its adapter, as PEFT loads it
                                   # no size, hash or address where it is not for everybody
     "checkpoint_overdue": false,                 # rounds go on, and checkpoints do not come
     "effort": {"participants": 4, "sessions": 9, "compute_s": 4210.0, "mean_session_s": 600.1,
                "longest_session_s": 3000.0, "samples": 30000, "rounds": 56}}

Then one frame a second: `{"kind": "frame", "seq": 813, "at": …}` and those of the keys above that
changed (replace them whole), plus, only where there is news,

     "new_rounds": [<like last_round>],     # put into the curve by `round`; may come twice
     "new_events": [{"id": 71, "at": …, "what": "joined", "who": "ada", "text": "…"}]

`seq` grows by one per frame. A viewer that reads too slowly skips frames and is sent a snapshot
instead. A frame whose `seq` is not the last one plus one: fetch the snapshot and the history.
No frame for 5 s: what is shown is stale. Close codes: 4404 no such collaboration, 4403 wrong
origin, 1012 the site restarts; come back after a random delay that grows.

What a browser gets on `/ws/me/`
--------------------------------
On every change, and at least every 10 s, the whole private state:

    {"kind": "me", "seq": 5, "at": …, "devices": [{"device": "<uuid>", "collaboration": "demo",
     "activity": "training", "reason": "", "round": 57, "samples": 120, "samples_per_s": 30.1}]}

A device that is not in the list is offline. Close code 4401: not logged in (any more).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any, Protocol
from uuid import UUID

from webapp.collaborations.models import Collaboration, State
from webapp.collaborations.selectors import collaboration_by_slug
from webapp.live import beat
from webapp.live.board import Standing
from webapp.live.exchange import Exchange, unpack
from webapp.live.facts import Facts, read_facts
from webapp.live.mailbox import Mailbox, PrivateMailbox
from webapp.live.minutes import MinuteMeans
from webapp.live.rooms import Room, as_text
from webapp.live.services import Told
from webapp.live.store import Stored
from webapp.live.threads import in_thread
from webapp.live.writer import Writer

logger = logging.getLogger(__name__)


class Link(Protocol):
    """One agent's socket in this process."""

    device_id: str
    slug: str
    session_id: UUID

    def control_changed(self) -> None: ...

    def replaced(self, *, by_session: str) -> None: ...


class Hub:
    """One per process and event loop; `start` may be called again and again."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.rooms: dict[str, Room] = {}

    def start(self) -> None:
        """Call inside the event loop. A new loop (tests have many) starts with nothing."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        self._loop = loop
        self.rooms = {}
        self.links: dict[tuple[str, str], Link] = {}
        self.people: set[PrivateMailbox] = set()
        self.alive: set[UUID] = set()
        self.minutes = MinuteMeans()
        self._tasks = set()
        self.writer = Writer(self._note_stored)
        self.exchange = Exchange(self._hear)
        for work in (self.exchange.listen(), self.writer.run(), beat.run(self)):
            self.spawn(work)

    async def stop(self) -> None:
        self._loop = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.writer.close()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs `work` beside everything else; its failure is logged. A stopped hub does nothing."""
        if self._loop is None:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("background work of the hub failed", exc_info=error)

    # ------------------------------------------------------------ viewers
    async def enter(self, slug: str, mailbox: Mailbox) -> None:
        """Adds a viewer, who gets a snapshot first. Raises Collaboration.DoesNotExist."""
        room = self.rooms.get(slug)
        if room is None or room.facts is None:
            facts = await in_thread(_read, slug)
            room = self._room(slug)
            room.facts = room.facts or facts
        if room.facts.shown["state"] == State.DRAFT:  # its devices may have made the room
            raise Collaboration.DoesNotExist
        mailbox.offer(as_text(room.snapshot(time.time()) or {}))
        room.viewers.add(mailbox)

    def leave(self, slug: str, mailbox: Mailbox) -> None:
        if room := self.rooms.get(slug):
            room.viewers.discard(mailbox)

    def log_out(self, login: str) -> None:
        """Ends the private frames of one browser session."""
        for mailbox in self.people:
            if mailbox.login == login:
                mailbox.close(4401)

    # ------------------------------------------------------------ agents
    async def attach(self, link: Link) -> None:
        """From now on `link` speaks for its device; an older socket of the device is closed."""
        old = self.links.get((link.device_id, link.slug))
        self.links[link.device_id, link.slug] = link
        if old is not None:
            old.replaced(by_session=link.session_id.hex)
        self._room(link.slug).own.add(link.device_id)
        self.exchange.watch(f"device.{link.device_id}")
        self.exchange.watch(f"collaboration.{link.slug}")
        await self.exchange.settle()
        await self.exchange.send(
            "hub.attached",
            device=link.device_id,
            slug=link.slug,
            session=link.session_id.hex,
        )

    def detach(self, link: Link) -> bool:
        """False when another socket of this device has taken over in this process."""
        if self.links.get((link.device_id, link.slug)) is not link:
            return False
        del self.links[link.device_id, link.slug]
        self.exchange.unwatch(f"device.{link.device_id}")
        return True

    def stand(self, slug: str, standing: Standing) -> None:
        """Takes the newest standing of one of this process's agents."""
        self._room(slug).board.update(standing)

    def tell_event(self, slug: str, event: Told | None) -> None:
        """Shows an event to the viewers of this and all other processes."""
        if event is not None:
            self._tell(slug, [], [event])

    def _note_stored(self, stored: Stored) -> None:
        for slug, news in stored.news.items():
            self._tell(slug, news.rounds, news.events)

    def _tell(self, slug: str, rounds: list[Any], events: list[Any]) -> None:
        if rounds or events:
            self._room(slug).add_news(rounds, events)
            self.spawn(self.exchange.send("hub.news", slug=slug, rounds=rounds, events=events))

    def _room(self, slug: str) -> Room:
        return self.rooms.setdefault(slug, Room(slug))

    # ------------------------------------------------------------ other processes
    def _hear(self, message: dict[str, Any]) -> None:
        """One message of the channel layer; `control.changed` comes from services anywhere."""
        match message:
            case {"type": "control.changed", "group": group}:
                self._control_changed(group)
            case {"type": "hub.boards", "boards": boards}:
                for slug, packed in boards.items():
                    self._room(slug).board.merge(unpack(packed))
            case {"type": "hub.news", "slug": slug, **news}:
                self._room(slug).add_news(news.get("rounds", []), news.get("events", []))
            case {"type": "hub.attached", "device": device, "slug": slug, "session": session}:
                if link := self.links.pop((device, slug), None):
                    link.replaced(by_session=session)
            case {"type": "hub.logged_out", "login": login}:
                self.log_out(login)

    def _control_changed(self, group: str) -> None:
        kind, _, key = group.partition(".")
        for link in self.links.values():
            if key == (link.device_id if kind == "device" else link.slug):
                link.control_changed()
        if kind == "collaboration" and (room := self.rooms.get(key)):
            room.facts_due = 0.0


def _read(slug: str) -> Facts:
    return read_facts(collaboration_by_slug(slug))


hub = Hub()
