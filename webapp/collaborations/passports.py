"""Issues passports: the site's word that a device may take part, for one hour."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from django.conf import settings

from trainer.passport import Claims, Passport, make_authority, public_text, sign
from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration
from webapp.core.errors import UserError
from webapp.devices.models import Device

LIFETIME_S = 3600.0
MIN_KEY_BITS = 2048


@cache
def _authority(path: Path) -> Ed25519PrivateKey:
    return make_authority(path)


def authority_public() -> str:
    """What peers check passports with: base64 of the site's public key."""
    return public_text(_authority(settings.AUTHORITY_KEY_FILE))


def issue(user: User, device: Device, peer_key: str, collaboration: Collaboration) -> Passport:
    """Signs; the caller decides whether `user` may take part. Raises UserError on a bad key."""
    _check_key(peer_key)
    claims = Claims(
        user=str(user.pk),
        device=device.pk.hex,
        peer_key=peer_key,
        collaboration=collaboration.slug,
        expires_at=time.time() + LIFETIME_S,
    )
    return sign(claims, _authority(settings.AUTHORITY_KEY_FILE))


def _check_key(peer_key: str) -> None:
    try:
        key = load_ssh_public_key(peer_key.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UserError(
            "The peer key is not an RSA public key.", "Start the agent anew."
        ) from error
    if not isinstance(key, RSAPublicKey) or key.key_size < MIN_KEY_BITS:
        raise UserError(
            f"The peer key is not an RSA key of {MIN_KEY_BITS} bits or more.",
            "Start the agent anew.",
        )
