"""A caller that knows every name and address, but need not have a passport that counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import P2P, P2PHandlerError, PeerID
from hivemind.proto import averaging_pb2, dht_pb2
from hivemind.proto.auth_pb2 import AccessToken
from hivemind.utils.asyncio import as_aiter
from hivemind.utils.auth import AuthRole, AuthRPCWrapper, TokenAuthorizerBase

from trainer.passport import Passport
from trainer.swarm.admission import as_token
from trainer.swarm.averager import RoundAverager
from trainer.swarm.gate import as_hivemind_key
from trainer.swarm.identity import Identity


class Careless(TokenAuthorizerBase):
    """Signs with any passport, and believes anybody's."""

    def __init__(self, identity: Identity, passport: Passport) -> None:
        super().__init__(as_hivemind_key(identity))
        self._token = as_token(passport)

    async def get_token(self) -> AccessToken:
        return self._token

    def is_token_valid(self, access_token: AccessToken) -> bool:
        return True

    def does_token_need_refreshing(self, access_token: AccessToken) -> bool:
        return False


class Intruder:
    """Each call returns why it was refused, or "" when it was answered."""

    def __init__(self, p2p: P2P, address: str, swarm_id: str, authorizer: Careless) -> None:
        self._authorizer = authorizer
        target = PeerID.from_base58(address.rpartition("/p2p/")[2])
        for servicer in (RoundAverager, DHTProtocol):
            servicer._collect_rpc_handlers()
        self._averager = RoundAverager._stub_type(p2p, target, swarm_id)
        self._dht = AuthRPCWrapper(
            DHTProtocol._stub_type(p2p, target, None), AuthRole.CLIENT, authorizer
        )

    async def ask_the_dht(self) -> str:
        return await _reason(self._dht.rpc_ping(dht_pb2.PingRequest(), timeout=60))

    async def introduce(self) -> str:
        return await _reason(self._averager.rpc_introduce(self._authorizer._token, timeout=60))

    async def join_group(self) -> str:
        request = averaging_pb2.JoinRequest(
            schema_hash=b"any", expiration=time.time() + 5, group_key="any", gather=b""
        )
        return await _reason(_first(self._averager.rpc_join_group(request)))

    async def aggregate_part(self) -> str:
        part = averaging_pb2.AveragingData(
            code=averaging_pb2.PART_FOR_AVERAGING, group_id=b"any", weight=1.0
        )
        return await _reason(_first(self._averager.rpc_aggregate_part(as_aiter(part))))

    async def download_state(self) -> str:
        request = averaging_pb2.DownloadRequest()
        return await _reason(_first(self._averager.rpc_download_state(request)))


async def _first(call: Awaitable[Any]) -> Any:
    """The first message of a stream, which is closed then."""
    stream = await call
    try:
        return await asyncio.wait_for(anext(stream), 60)
    finally:
        await stream.aclose()


async def _reason(call: Awaitable[Any]) -> str:
    try:
        answer = await call
    except P2PHandlerError as error:
        return str(error)
    assert answer is not None
    return ""
