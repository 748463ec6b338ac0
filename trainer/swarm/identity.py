"""One RSA key for each device and collaboration: peer id, passport key and owner of its records.

Needs cryptography only, so that the agent can make the key before anything of hivemind is loaded.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_ssh_public_key,
)

FILENAME = "identity.key"
_owner = re.compile(rb"^\[owner:(.+)\]$")
_RSA = b"\x08\x00"  # libp2p's key message: field 1, the kind of key, is 0 for RSA


class IdentityError(ValueError):
    """The key file is not one of ours; says which file and what to do."""


@dataclass(frozen=True)
class Identity:
    path: Path
    key: rsa.RSAPrivateKey

    @property
    def public_text(self) -> str:
        """OpenSSH format: what the site signs and records are owned by."""
        return self.key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()

    @property
    def peer_id(self) -> str:
        return peer_id_of(self.public_text)


def load_or_make(path: Path) -> Identity:
    """The key at `path`, made with mode 0600 when it is not there. Raises IdentityError."""
    if not path.exists():
        _write(path, rsa.generate_private_key(public_exponent=65537, key_size=2048))
    content = path.read_bytes()
    try:
        if content[:2] != _RSA or content[2] != 0x12:
            raise ValueError("another kind of key")
        size, start = _read_size(content, 3)
        if len(content) != start + size:
            raise ValueError("it is cut short")
        key = load_der_private_key(content[start:], password=None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise ValueError("another kind of key")
    except (ValueError, IndexError) as error:
        raise IdentityError(
            f"{path} does not hold this device's key ({error}): delete the file to get a new one"
        ) from error
    return Identity(path, key)


def peer_id_of(public_text: str) -> str:
    """libp2p's name for an RSA key in OpenSSH format. Raises ValueError when it is not one."""
    from base58 import b58encode

    der = load_ssh_public_key(public_text.encode()).public_bytes(
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    )
    message = _RSA + b"\x12" + _size(len(der)) + der
    return b58encode(b"\x12\x20" + hashlib.sha256(message).digest()).decode()


def subkey_of(public_text: str) -> bytes:
    """The DHT lets only the holder of this key write records with such a subkey."""
    return f"[owner:{public_text}]".encode()


def owner_of(subkey: Any) -> str:
    """Peer id of the owner of a record; empty for what is not a record of ours."""
    found = _owner.match(subkey) if isinstance(subkey, bytes) else None
    try:
        return peer_id_of(found[1].decode()) if found else ""
    except (ValueError, UnsupportedAlgorithm):
        return ""


def _write(path: Path, key: rsa.RSAPrivateKey) -> None:
    der = key.private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(_RSA + b"\x12" + _size(len(der)) + der)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _size(number: int) -> bytes:
    """A number as protobuf writes it: 7 bits a byte, lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _read_size(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while content[at] & 0x80:
        number |= (content[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return number | content[at] << shift, at + 1
