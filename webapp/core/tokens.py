"""Bearer tokens and one-time codes: long random text, kept only as SHA-256.

A fast hash is right here: 256 random bits cannot be guessed, unlike passwords.
"""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    return secrets.token_urlsafe(32)


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def short_id() -> str:
    """Six hex digits, for names that need only be unlikely to clash."""
    return secrets.token_hex(3)
