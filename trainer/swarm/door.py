"""Passports on averaging and state calls: nobody calls or answers without having shown one.

Guards against hivemind 1.1.12, whose authorizer covers the DHT alone: whoever could reach a peer's
port could download the model and enter an average. Before a call both sides show their passports,
in one small exchange that holds for a few seconds of calls. libp2p proves to each the other's peer
id, and a passport names the key a peer id is made of, so nothing more needs a signature.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar

from hivemind.p2p import P2P, P2PContext, P2PHandlerError, PeerID, ServicerBase
from hivemind.proto.auth_pb2 import AccessToken
from hivemind.proto.p2pd_pb2 import RPCError

from trainer.passport import InvalidPassport
from trainer.swarm.admission import Admission, Holder
from trainer.swarm.linger import until_closed

INTRODUCTION = "rpc_introduce"
SHOWN_S = 4.0  # no peer that lost its memory with a restart is back so soon
PATIENCE_S = 5.0
log = logging.getLogger(__name__)


class Refused(P2PHandlerError):
    """The other side does not want us, or we do not want it; says why."""


class Door:
    """Who has shown a passport to us, and to whom we have shown ours."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._guests: dict[str, Holder] = {}
        self._shown: dict[str, float] = {}
        self.refusals: dict[str, str] = {}

    # ------------------------------------------------------------ as the one who is called
    def let_in(self, name: str, token: AccessToken) -> AccessToken:
        """Remembers the passport of this peer; answers with ours. Raises InvalidPassport."""
        try:
            self._guests[name] = self._checked(name, token)
        except InvalidPassport as why:
            self._admission.refuse(name, "the introduction", why)
            raise
        return self._admission.own()

    def problem(self, name: str, call: str) -> str:
        """Why this peer may not make this call; empty: it may."""
        holder = self._guests.get(name)
        try:
            if holder is None:
                raise InvalidPassport("no passport was shown")
            self._admission.check_again(holder)
        except InvalidPassport as why:
            self._guests.pop(name, None)
            self._admission.refuse(name, call, why)
            return str(why)
        return ""

    # ------------------------------------------------------------ as the one who calls
    async def enter(self, name: str, introduce: Callable[..., Awaitable[AccessToken]]) -> None:
        """Shows our passport and looks at theirs, unless that was a moment ago. Raises Refused."""
        if time.monotonic() < self._shown.get(name, 0.0):
            return
        try:
            token = await introduce(self._admission.own(), timeout=PATIENCE_S)
        except TimeoutError:
            raise _silent(name) from None
        except P2PHandlerError as why:
            raise self._refusal(name, f"{name} refuses this peer: {why}") from why
        try:
            self._checked(name, token)
        except InvalidPassport as why:
            raise self._refusal(name, f"{name} may not take part: {why}") from why
        self.refusals.pop(name, None)
        self._shown[name] = time.monotonic() + SHOWN_S

    def _refusal(self, name: str, words: str) -> Refused:
        if self.refusals.get(name) != words:
            log.warning("%s", words)
        self.refusals[name] = words
        return Refused(words)

    def _checked(self, name: str, token: AccessToken) -> Holder:
        holder = self._admission.check(token)
        if holder.peer_id != name:
            raise InvalidPassport("this passport is another peer's")
        return holder


def _silent(name: str) -> TimeoutError:
    return TimeoutError(f"{name} did not answer for {PATIENCE_S:.0f} s")


class GuardedCalls(ServicerBase):
    """The half of the averager that stands before all of its remote calls, in both directions."""

    door: Door
    _door_here: ClassVar[Door]  # of the process, which runs one averager; stubs know only the class

    def _run_internal(self) -> None:
        type(self)._door_here = self.door
        super()._run_internal()  # type: ignore[misc]

    async def rpc_introduce(self, request: AccessToken, context: P2PContext) -> AccessToken:
        return self.door.let_in(str(context.remote_id), request)

    async def add_p2p_handlers(self, p2p: P2P, wrapper: Any = None, **options: Any) -> None:
        await super().add_p2p_handlers(p2p, wrapper or _Guarded(self), **options)

    @classmethod
    def get_stub(cls, p2p: P2P, peer: PeerID, *, namespace: str | None = None) -> Any:
        stub = super().get_stub(p2p, peer, namespace=namespace)
        return _Introduced(stub, str(peer), cls._door_here)


class _Guarded:
    """Stands in for the averager where p2pd's calls arrive. All but the introduction stream."""

    def __init__(self, averager: GuardedCalls) -> None:
        self._averager = averager

    def __getattr__(self, call: str) -> Any:
        method = getattr(self._averager, call)

        def guarded(request: Any, context: P2PContext) -> AsyncIterator[Any]:
            problem = self._averager.door.problem(str(context.remote_id), call)
            return until_closed(_refuse(problem)) if problem else method(request, context)

        return method if call == INTRODUCTION else guarded


async def _refuse(problem: str) -> AsyncIterator[RPCError]:
    yield RPCError(message=problem)  # sent as an error: the caller's read raises it


class _Introduced:
    """A stub that introduces us before it calls."""

    def __init__(self, stub: Any, name: str, door: Door) -> None:
        self._stub, self._name, self._door = stub, name, door

    def __getattr__(self, call: str) -> Any:
        method = getattr(self._stub, call)

        async def introduced(request: Any) -> Any:
            await self._door.enter(self._name, self._stub.rpc_introduce)
            try:  # all these calls are streams, and libp2p tries for 40 s to open one
                return await asyncio.wait_for(method(request), PATIENCE_S)
            except TimeoutError:
                raise _silent(self._name) from None

        return introduced
