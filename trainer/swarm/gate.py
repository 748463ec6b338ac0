"""Passports on DHT calls: a peer without a valid one can neither ask nor store."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from hivemind.proto.auth_pb2 import AccessToken
from hivemind.utils.auth import AuthorizedRequestBase, TokenAuthorizerBase
from hivemind.utils.crypto import RSAPrivateKey

from trainer.passport import InvalidPassport
from trainer.swarm.admission import Admission
from trainer.swarm.identity import Identity, peer_id_of


def as_hivemind_key(identity: Identity) -> RSAPrivateKey:
    """Also makes it this process' key, which hivemind signs records with."""
    key = RSAPrivateKey.__new__(RSAPrivateKey)
    key._private_key = identity.key
    RSAPrivateKey._process_wide_key = key
    return key


class PassportGate(TokenAuthorizerBase):
    """hivemind's authorizer; both sides of a call sign it with the keys their passports name."""

    def __init__(self, key: RSAPrivateKey, admission: Admission) -> None:
        super().__init__(key)
        self._admission = admission

    async def refresh_token_if_needed(self) -> None:
        """Without hivemind's assertion that it is valid: that is for the others to judge."""
        self._local_access_token = await self.get_token()

    async def get_token(self) -> AccessToken:
        return self._admission.own()

    def does_token_need_refreshing(self, access_token: AccessToken) -> bool:
        """hivemind wants to know; above, the newest is taken each time."""
        return True

    def is_token_valid(self, access_token: AccessToken) -> bool:
        try:
            self._admission.check(access_token)
        except InvalidPassport:
            return False
        return True

    async def validate_request(self, request: AuthorizedRequestBase) -> bool:
        """Raises InvalidPassport: the caller is sent the reason."""
        token = request.auth.client_access_token
        try:
            self._admission.check(token)
            if not await super().validate_request(request):
                raise InvalidPassport(
                    "the call is not signed with the key of its passport, or it is old or a repeat"
                )
        except InvalidPassport as why:
            self._admission.refuse(_name_in(token), "a DHT call", why)
            raise
        return True


def _name_in(token: AccessToken) -> str:
    """The peer id that the token claims; nobody has proven it."""
    try:
        return peer_id_of(token.public_key.decode())
    except (ValueError, UnsupportedAlgorithm):
        return "somebody"
