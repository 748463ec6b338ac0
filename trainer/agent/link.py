"""The one websocket to the site, in a thread with its own loop, so that training never waits.

Progress: one pending message, newest wins, at most one a second. Reports: everything in the spool,
in order, again from the first unacknowledged one after every reconnect.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from trainer.agent.spool import Spool
from trainer.agent.wishes import Wishes
from trainer.wire import (
    MAX_MESSAGE_BYTES,
    Ack,
    Bye,
    Control,
    Hello,
    LeaveCause,
    Progress,
    Refused,
    Welcome,
    read_from_site,
)

ANSWER_S = 15.0
RESEND_S = 30.0  # without an acknowledgement on a socket that seems alive
PROGRESS_S = 1.0
FIRST_DELAY_S = 6.0  # after a restart of the site, agents come back spread over this time
LONGEST_DELAY_S = 60.0
log = logging.getLogger(__name__)


class _Refusal(Exception):
    def __init__(self, message: Refused) -> None:
        super().__init__(f"{message.reason} {message.next_step}".strip())
        self.message = message


def delay_s(failures: int) -> float:
    """Random, so that a crowd does not come back at once; longer with each failure in a row."""
    longest = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** min(failures, 8))
    return random.uniform(0.2 if not failures else 1.0, longest)  # noqa: S311


class Link:
    """Delivers what earlier sessions left behind, then carries this session until `close`."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        hello: Hello,
        spool: Spool,
        earlier: list[Spool],
        wishes: Wishes,
        changed: Callable[[str], None] = lambda state: None,
    ) -> None:
        self._url, self._token, self._hello = url, token, hello
        self._spool, self._earlier, self._wishes = spool, earlier, wishes
        self._changed = changed
        self._failures = 0
        self._progress: Progress | None = None
        self._loop = asyncio.new_event_loop()
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)

    # ------------------------------------------------------------ from any thread
    def start(self) -> None:
        self._thread.start()

    def progress(self, message: Progress) -> None:
        self._progress = message
        self.wake()

    def wake(self) -> None:
        """There is something new to send."""
        self._call(self._wake.set)

    def close(self, timeout_s: float = 5.0) -> bool:
        """True when everything in the spool was acknowledged; what was not stays on disk."""
        self._call(self._closing.set)
        self._call(self._wake.set)
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._spool.num_waiting

    def _call(self, act: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody is left to be told
            self._loop.call_soon_threadsafe(act)

    # ------------------------------------------------------------ in the link's thread
    def _run(self) -> None:
        logging.getLogger("websockets").setLevel(logging.INFO)  # its DEBUG shows the token
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._carry())
        except Exception:
            log.exception("the link to the site ended; reports stay on disk")
        finally:
            self._loop.close()

    async def _carry(self) -> None:
        while self._spool.num_waiting or not self._closing.is_set():
            try:
                await self._deliver_earlier()
                await self._talk(self._spool, is_current=True)
                pause_s = 0.0
            except _Refusal as refusal:
                if refusal.message.retry_after_s is None:
                    cause = refusal.message.cause or LeaveCause.FAILED
                    self._wishes.stop(str(refusal), cause)
                    return
                self._changed(str(refusal))
                pause_s = refusal.message.retry_after_s + random.uniform(0, FIRST_DELAY_S)  # noqa: S311
            except (OSError, WebSocketException, TimeoutError, ValueError) as error:
                if self._wishes.shut_out:  # it closed the connection after it had said why
                    return
                pause_s = self._lost(error)
            if self._closing.is_set() and pause_s:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), pause_s)

    def _lost(self, error: Exception) -> float:
        pause_s = delay_s(self._failures)
        self._failures += 1
        words = str(error) or type(error).__name__
        self._changed(f"The site cannot be reached ({words}); training goes on.")
        log.info("no link to the site (%s); trying again in %.1f s", words, pause_s)
        return pause_s

    async def _deliver_earlier(self) -> None:
        """Reports of sessions that were killed, under their own names, each closed with a Bye."""
        while self._earlier:
            spool = self._earlier[0]
            if not spool.said_bye():
                spool.add(Bye(cause=LeaveCause.FAILED, reason="the agent was killed"))
            try:
                await self._talk(spool, is_current=False)
            except _Refusal as refusal:
                if refusal.message.retry_after_s is not None:
                    raise
                log.warning("the site does not take session %s: %s", spool.session, refusal)
                self._earlier.pop(0)
                continue
            if not spool.num_waiting:
                log.info("what session %s had left behind is delivered", spool.session)
                spool.delete()
                self._earlier.pop(0)

    async def _talk(self, spool: Spool, *, is_current: bool) -> None:
        """One connection. Returns when there is nothing left to say, or to come back at once."""
        async with connect(
            self._url,
            additional_headers={"Authorization": f"Bearer {self._token}"},
            max_size=MAX_MESSAGE_BYTES,
            open_timeout=ANSWER_S,
            close_timeout=2,
        ) as socket:
            hello = self._hello.model_copy(update={"session": spool.session})
            await socket.send(hello.model_dump_json())
            answer = read_from_site(await asyncio.wait_for(socket.recv(), ANSWER_S))
            if isinstance(answer, Refused):
                raise _Refusal(answer)
            if not isinstance(answer, Welcome):
                raise ValueError(f"the site answered Hello with {answer.kind}")
            if spool.has_gap_after(answer.stored_seq):
                log.warning("the site lost reports; going on as a new session")
                spool.move_to(uuid.uuid4().hex)
                return
            spool.acknowledge(answer.stored_seq)
            self._failures = 0
            if is_current:
                self._changed("")
                self._wishes.site(answer.control)
            await self._exchange(socket, spool, answer.stored_seq, is_current)

    async def _exchange(
        self, socket: ClientConnection, spool: Spool, stored_seq: int, is_current: bool
    ) -> None:
        works = {
            asyncio.ensure_future(self._send(socket, spool, stored_seq, is_current)),
            asyncio.ensure_future(self._receive(socket, spool, is_current)),
        }
        try:
            done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for work in works:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)
        for work in done:
            work.result()

    async def _send(
        self, socket: ClientConnection, spool: Spool, sent: int, is_current: bool
    ) -> None:
        progress_at = resend_at = 0.0
        while True:
            self._wake.clear()
            while reports := spool.after(sent):
                for report in reports:
                    await socket.send(report.model_dump_json())
                sent = reports[-1].seq
                resend_at = time.monotonic() + RESEND_S
            now = time.monotonic()
            if not spool.num_waiting:
                if not is_current or self._closing.is_set():
                    return
            elif now >= resend_at:
                sent = spool.after(0, 1)[0].seq - 1
                continue
            if is_current and self._progress and now >= progress_at:
                message, self._progress = self._progress, None
                await socket.send(message.model_dump_json())
                progress_at = now + PROGRESS_S
            due = [resend_at] if spool.num_waiting else []
            due += [progress_at] if self._progress else []
            with suppress(TimeoutError):
                wait_s = max(min(due) - now, 0.01) if due else None
                await asyncio.wait_for(self._wake.wait(), wait_s)

    async def _receive(self, socket: ClientConnection, spool: Spool, is_current: bool) -> None:
        async for text in socket:
            message = read_from_site(text)
            if isinstance(message, Ack):
                spool.acknowledge(message.seq)
                self._wake.set()
            elif isinstance(message, Control) and is_current:
                self._wishes.site(message)
            elif isinstance(message, Refused):
                raise _Refusal(message)
        raise ConnectionResetError("it closed the connection")
