from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.cache import cache


@pytest.fixture(autouse=True)
def empty_cache():
    """Rate limits count from zero in every test."""
    cache.clear()


@pytest.fixture(scope="session")
def peer_key():
    """A public key in the form that a device sends."""
    key = generate_private_key(public_exponent=65537, key_size=2048).public_key()
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
