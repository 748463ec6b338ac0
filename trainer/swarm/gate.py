"""Passports on DHT calls: a peer without a valid one can neither ask nor store."""

from __future__ import annotations

from pathlib import Path

from hivemind.proto.auth_pb2 import AccessToken
from hivemind.utils.auth import TokenAuthorizerBase
from hivemind.utils.crypto import RSAPrivateKey

from trainer.passport import InvalidPassport, Passport, verify
from trainer.swarm import clock
from trainer.swarm.identity import Identity

KNOWN_PASSPORTS = 4096


def as_hivemind_key(identity: Identity) -> RSAPrivateKey:
    """Also makes it this process' key, which hivemind signs records with."""
    key = RSAPrivateKey.__new__(RSAPrivateKey)
    key._private_key = identity.key
    RSAPrivateKey._process_wide_key = key
    return key


def write_passport(path: Path, passport: Passport) -> None:
    """Where the DHT's process finds the newest one: it was forked and shares no memory with us."""
    draft = path.with_suffix(".new")
    draft.write_text(passport.model_dump_json())
    draft.replace(path)


class PassportGate(TokenAuthorizerBase):
    """hivemind's token, filled with our passport: `username` is the claims, as they were signed."""

    def __init__(
        self, key: RSAPrivateKey, passport_file: Path, authority: str, collaboration: str
    ) -> None:
        super().__init__(key)
        self._file, self._authority, self._collaboration = passport_file, authority, collaboration
        self._read_version = -1
        self._known: dict[bytes, float] = {}  # passports that were checked, and their expiry

    async def get_token(self) -> AccessToken:
        self._read_version = self._file_version()
        passport = Passport.model_validate_json(self._file.read_text())
        claims = passport.read()
        return AccessToken(
            username=passport.claims,
            public_key=claims.peer_key.encode(),
            expiration_time=str(claims.expires_at),
            signature=passport.signature.encode(),
        )

    def is_token_valid(self, access_token: AccessToken) -> bool:
        content = access_token.SerializeToString()
        expiry = self._known.get(content)
        if expiry is not None:
            return expiry > clock.now()
        try:
            claims = verify(
                Passport(claims=access_token.username, signature=access_token.signature.decode()),
                authority=self._authority,
                collaboration=self._collaboration,
                now=clock.now(),
            )
        except (InvalidPassport, ValueError):
            return False
        if claims.peer_key.encode() != access_token.public_key:
            return False
        if len(self._known) >= KNOWN_PASSPORTS:
            self._known.clear()
        self._known[content] = claims.expires_at
        return True

    def does_token_need_refreshing(self, access_token: AccessToken) -> bool:
        return self._file_version() != self._read_version

    def _file_version(self) -> int:
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return self._read_version  # keep the one we have
