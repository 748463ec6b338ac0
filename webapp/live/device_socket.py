"""The websocket of agents and coordinators: `/ws/device/`, messages of `trainer.wire`."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from django.db import DatabaseError
from django.utils import timezone

from trainer.wire import (
    Ack,
    Activity,
    Bye,
    Control,
    LeaveCause,
    Progress,
    Report,
    Wish,
)
from trainer.wire import Welcome as WelcomeMessage
from webapp.accounts.selectors import public_name
from webapp.collaborations.control import current_control
from webapp.live import sockets
from webapp.live.board import Standing
from webapp.live.greeting import Guest, Rejected, greet, read
from webapp.live.hub import hub
from webapp.live.mailbox import Closing
from webapp.live.public import row_of
from webapp.live.services import leave, lose
from webapp.live.sockets import Gone, Receive, Scope, Send, Socket, until_one_ends
from webapp.live.threads import in_thread
from webapp.live.window import Window

GRACE_S = 10.0
CONTROL_EVERY_S = 60.0
SHUT_OUT = (LeaveCause.REVOKED, LeaveCause.BANNED)


async def serve_device(scope: Scope, receive: Receive, send: Send) -> None:
    socket = Socket(scope, receive, send)
    hub.start()
    try:
        await socket.accept()
        await AgentLink(socket, await greet(socket)).run()
    except Rejected as rejected:
        try:
            await socket.send(rejected.message.model_dump_json())
        except Gone:
            return
        await socket.close(rejected.code, rejected.message.reason)
    except Closing as closing:
        await socket.close(closing.code)
    except Gone:
        return


class AgentLink:
    """One agent's socket: what it says goes to the hub, what the site wants goes to it."""

    def __init__(self, socket: Socket, guest: Guest) -> None:
        self._socket, self._guest = socket, guest
        self.device_id = str(guest.device.pk)
        self.slug = guest.collaboration.slug
        self.session_id: UUID = guest.session.pk
        self._window = Window(guest.session.stored_seq)
        self._stored_seq = guest.session.stored_seq
        self._control = guest.control
        self._is_online = guest.session.ended_at is None
        self._ack_due = asyncio.Event()
        self._control_due = asyncio.Event()
        self._control_due.set()  # it may have changed since the greeting
        self._ending: Rejected | Closing | None = None

    async def run(self) -> None:
        """Serves until either side ends it. Raises Rejected, Closing or Gone."""
        if self._is_online:
            await hub.attach(self)
            self._appear()
        try:
            welcome = WelcomeMessage(
                server_time=time.time(), stored_seq=self._stored_seq, control=self._control
            )
            await self._socket.send(welcome.model_dump_json())
            await until_one_ends(self._listen(), self._acknowledge(), self._watch_control())
        finally:
            hub.alive.discard(self.session_id)
            if hub.detach(self) and self._is_online:
                hub.spawn(self._mourn(timezone.now()))

    # ------------------------------------------------------------ from the agent
    async def _listen(self) -> None:
        while True:
            message = read(await self._socket.receive())
            if self._is_online:
                hub.alive.add(self.session_id)
            if isinstance(message, Progress):
                self._stand(message)
            elif isinstance(message, Report):
                await self._take(message)
            else:
                raise Rejected(sockets.MALFORMED, "A second hello came on the same socket.")

    async def _take(self, report: Report) -> None:
        """Hands on what is in order; what is stored already is acknowledged again."""
        if report.seq <= self._stored_seq:
            self._ack_due.set()
        for ready in self._window.take(report):
            await hub.writer.put(self, ready)
            if isinstance(ready.body, Bye):
                self._disappear()

    def _appear(self) -> None:
        """A device is seen from its first second; after a reconnect its last word stands."""
        room = hub.rooms.get(self.slug)
        held = room.board.standings.get(self.device_id) if room else None
        if held is None or held.gone:
            self._stand(Progress(round=0, activity=Activity.STARTING, reason="just connected"))

    def _stand(self, progress: Progress, *, gone: bool = False) -> None:
        if not self._is_online:
            return
        owner = self._guest.device.owner
        hub.stand(
            self.slug,
            Standing(
                device=self.device_id,
                owner=owner.pk,
                row=row_of(self.slug, self.device_id),
                name=public_name(owner),
                role=self._guest.hello.role,
                seen=time.time(),
                progress=progress,
                gone=gone,
            ),
        )

    def _disappear(self) -> None:
        self._stand(Progress(round=0, activity=Activity.LEAVING), gone=True)
        self._is_online = False

    # ------------------------------------------------------------ to the agent
    def stored(self, seq: int) -> None:
        self._stored_seq = max(self._stored_seq, seq)
        self._ack_due.set()

    def unstorable(self, reason: str, *, retry_after_s: float) -> None:
        self._ending = Rejected(
            sockets.TRY_AGAIN,
            reason,
            f"The agent tries again in {retry_after_s:.0f} s.",
            retry_after_s=retry_after_s,
        )
        self._ack_due.set()

    def replaced(self, *, by_session: str) -> None:
        """The same device has opened another socket, here or in another process.

        Its own session come back on a new socket is no reason to give up.
        """
        self._is_online = False
        if by_session == self.session_id.hex:
            self._ending = Closing(sockets.REPLACED)
        else:
            self._ending = Rejected(
                sockets.REPLACED,
                "The agent was started again on this device.",
                cause=LeaveCause.REPLACED,
            )
        self._ack_due.set()

    def control_changed(self) -> None:
        self._control_due.set()

    async def _acknowledge(self) -> None:
        """One acknowledgement for all that was stored since the last one."""
        while True:
            await self._ack_due.wait()
            self._ack_due.clear()
            if self._ending is not None:
                raise self._ending
            await self._socket.send(Ack(seq=self._stored_seq).model_dump_json())

    async def _watch_control(self) -> None:
        """A push asks for a look at once; without one (it may be lost) there is a look a minute."""
        while True:
            longest_s = CONTROL_EVERY_S * random.uniform(0.8, 1.2)  # noqa: S311  spreads the load
            with suppress(TimeoutError):
                await asyncio.wait_for(self._control_due.wait(), longest_s)
            self._control_due.clear()
            try:
                guest = self._guest
                control = await in_thread(current_control, guest.device, guest.collaboration)
            except DatabaseError:
                continue
            if control != self._control:
                await self._tell(control)

    async def _tell(self, control: Control) -> None:
        self._control = control
        await self._socket.send(control.model_dump_json())
        if control.wish == Wish.STOP and control.cause in SHUT_OUT:
            self._disappear()
            event = await hub.writer.call(leave, self._guest.session, control.cause, control.reason)
            hub.tell_event(self.slug, event)
            raise Closing(sockets.FORBIDDEN)

    async def _mourn(self, cut_at: datetime) -> None:
        """The socket broke off without a good-bye: a while later the session counts as lost."""
        await asyncio.sleep(GRACE_S)
        if (self.device_id, self.slug) in hub.links:
            return
        reason = f"the connection broke off and did not come back within {GRACE_S:.0f} s"
        event = await hub.writer.call(lose, self.session_id, cut_at=cut_at, reason=reason)
        if event is not None:
            self._disappear()
            hub.tell_event(self.slug, event)
