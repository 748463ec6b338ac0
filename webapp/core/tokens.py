"""Bearer tokens and one-time codes: long random text, kept only as SHA-256.

A fast hash is right here: 256 random bits cannot be guessed, unlike passwords.
"""

from __future__ import annotations

import base64
import hashlib
import secrets

from django.utils.crypto import salted_hmac


def new_token() -> str:
    return secrets.token_urlsafe(32)


def derived_token(*parts: object) -> str:
    """The same for the same `parts`; nobody without SECRET_KEY can work it out."""
    digest = salted_hmac("token", repr(parts), algorithm="sha256").digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def short_id() -> str:
    """Six hex digits, for names that need only be unlikely to clash."""
    return secrets.token_hex(3)
