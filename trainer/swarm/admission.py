"""Who may take part: what every gate of this device asks about a passport.

A passport travels as hivemind's access token: `username` is the claims, as they were signed.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path

from hivemind.proto.auth_pb2 import AccessToken

from trainer.passport import InvalidPassport, Passport, verify
from trainer.swarm import clock
from trainer.swarm.identity import peer_id_of
from trainer.swarm.revoked import Revoked

KNOWN_PASSPORTS = 4096
QUIET_S = 10.0  # between two lines of the log about one peer
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """Whom a checked passport belongs to. `peer_id` follows from the key that it names."""

    peer_id: str
    device: str
    expires_at: float


class Admission:
    """One for each process; `passport_file` and `revoked` bring it the news of the main one."""

    def __init__(
        self, passport_file: Path, revoked: Revoked, authority: str, collaboration: str
    ) -> None:
        self._file, self._revoked = passport_file, revoked
        self._authority, self._collaboration = authority, collaboration
        self._own: AccessToken | None = None
        self._own_version = -1
        self._known: dict[bytes, Holder] = {}
        self._next_line: dict[str, float] = {}

    def show(self, passport: Passport) -> None:
        """Makes this the device's own passport, for all of its processes."""
        draft = self._file.with_suffix(".new")
        draft.write_text(passport.model_dump_json())
        draft.replace(self._file)

    def own(self) -> AccessToken:
        """The device's newest passport, the same object until there is a newer one."""
        try:
            version = self._file.stat().st_mtime_ns
        except OSError:
            version = self._own_version  # keep the one we have
        if self._own is None or version != self._own_version:
            passport = Passport.model_validate_json(self._file.read_text())
            self._own, self._own_version = as_token(passport), version
        return self._own

    def check(self, token: AccessToken) -> Holder:
        """Whose passport this is. Raises InvalidPassport with the reason it does not count."""
        content = token.SerializeToString()
        holder = self._known.get(content)
        if holder is None:
            holder = self._read(token)
            if len(self._known) >= KNOWN_PASSPORTS:
                self._known.clear()
            self._known[content] = holder
        self.check_again(holder)
        return holder

    def check_again(self, holder: Holder) -> None:
        """Whether a passport that was good still is. Raises InvalidPassport."""
        late_s = clock.now() - holder.expires_at
        if late_s >= 0:
            raise InvalidPassport(f"this passport expired {late_s:.0f} s ago")
        if holder.device in self._revoked:
            raise InvalidPassport(f"this device was revoked (list {self._revoked.number})")

    def refuse(self, who: str, what: str, why: object) -> None:
        """Says so in the log, but not for each call of somebody who keeps calling."""
        now = time.monotonic()
        if now < self._next_line.get(who, 0.0):
            return
        if len(self._next_line) >= KNOWN_PASSPORTS:
            self._next_line.clear()
        self._next_line[who] = now + QUIET_S
        log.warning("refused %s of %s: %s", what, who, why)

    def _read(self, token: AccessToken) -> Holder:
        if not token.username:
            raise InvalidPassport("no passport was shown")
        try:
            passport = Passport(claims=token.username, signature=token.signature.decode())
        except ValueError as error:
            raise InvalidPassport("this passport is malformed") from error
        claims = verify(
            passport,
            authority=self._authority,
            collaboration=self._collaboration,
            now=clock.now(),
        )
        if claims.peer_key.encode() != token.public_key:
            raise InvalidPassport("this passport names another key")
        return Holder(peer_id_of(claims.peer_key), claims.device, claims.expires_at)


def as_token(passport: Passport) -> AccessToken:
    claims = passport.read()
    return AccessToken(
        username=passport.claims,
        public_key=claims.peer_key.encode(),
        expiration_time=str(claims.expires_at),
        signature=passport.signature.encode(),
    )
