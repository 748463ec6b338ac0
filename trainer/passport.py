"""Passports: the site's signature over (user, device, peer key, collaboration, expiry).

And the list of those that count no more before they expire. Cryptography only, so that web
processes can sign. `trainer/swarm/admission.py` checks both on calls.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Annotated

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from pydantic import Field

from trainer.wire import Message, Slug

MOST_REVOKED = 10_000  # devices on the list at once; they leave it when their passports expire


class Claims(Message):
    """`peer_key` is the device's RSA public key in OpenSSH format; times are site time."""

    user: str = Field(max_length=64)
    device: str = Field(max_length=64)
    peer_key: str = Field(max_length=1000)
    collaboration: Slug
    expires_at: float


class Passport(Message):
    """`claims` is the signed text itself, so that a check needs no canonical form."""

    claims: str = Field(max_length=4000)
    signature: str = Field(max_length=200)

    def read(self) -> Claims:
        """The claims, not yet checked. Raises ValueError when they are malformed."""
        return Claims.model_validate_json(self.claims)


class InvalidPassport(ValueError):
    """Says in words why a passport is refused."""

    def __repr__(self) -> str:
        return str(self)  # what hivemind sends to the one who is refused


class Revocations(Message):
    """Devices (as in `Claims.device`) whose passports count no more. A higher number is newer."""

    number: int = Field(ge=1, le=10**15)
    devices: tuple[Annotated[str, Field(max_length=64)], ...] = Field(max_length=MOST_REVOKED)


class RevocationList(Message):
    """`revocations` is the signed text itself."""

    revocations: str = Field(max_length=100 + 70 * MOST_REVOKED)
    signature: str = Field(max_length=200)


def make_authority(path: Path) -> Ed25519PrivateKey:
    """The site's signing key at `path`, made with mode 0600 when it is not there."""
    if path.exists():
        key = load_pem_private_key(path.read_bytes(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(f"{path} does not hold an Ed25519 key")
        return key
    key = Ed25519PrivateKey.generate()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


def public_text(key: Ed25519PrivateKey) -> str:
    """Base64 of the 32 raw bytes: what peers are given to check passports with."""
    return base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def sign(claims: Claims, authority: Ed25519PrivateKey) -> Passport:
    text = claims.model_dump_json()
    return Passport(claims=text, signature=_signature(text, authority))


def sign_revocations(revocations: Revocations, authority: Ed25519PrivateKey) -> RevocationList:
    text = revocations.model_dump_json()
    return RevocationList(revocations=text, signature=_signature(text, authority))


def verify(passport: Passport, *, authority: str, collaboration: str, now: float) -> Claims:
    """The claims of a valid passport. Raises InvalidPassport with the reason otherwise."""
    try:
        _check_signature(passport.claims, passport.signature, authority)
        claims = passport.read()
    except (InvalidSignature, ValueError) as error:
        raise InvalidPassport("this passport was not signed by the site") from error
    if claims.collaboration != collaboration:
        raise InvalidPassport(f"this passport is for {claims.collaboration}, not {collaboration}")
    if claims.expires_at <= now:
        raise InvalidPassport(f"this passport expired {now - claims.expires_at:.0f} s ago")
    return claims


def read_revocations(signed: RevocationList, *, authority: str) -> Revocations:
    """The content of a list that the site signed. Raises ValueError otherwise."""
    try:
        _check_signature(signed.revocations, signed.signature, authority)
    except InvalidSignature as error:
        raise ValueError("this revocation list was not signed by the site") from error
    return Revocations.model_validate_json(signed.revocations)


def _signature(text: str, authority: Ed25519PrivateKey) -> str:
    return base64.b64encode(authority.sign(text.encode())).decode()


def _check_signature(text: str, signature: str, authority: str) -> None:
    """Raises InvalidSignature, or ValueError when one of them is no base64."""
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(authority))
    key.verify(base64.b64decode(signature), text.encode())
