"""Passports, the site's word that a device may take part for an hour, and who lost that right."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from trainer.passport import (
    MOST_REVOKED,
    Claims,
    Passport,
    RevocationList,
    Revocations,
    make_authority,
    public_text,
    sign,
    sign_revocations,
)
from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration, Revoked
from webapp.core.errors import UserError
from webapp.devices.models import Device
from webapp.devices.selectors import outlawed
from webapp.devices.services import note_passport

LIFETIME_S = 3600.0
MIN_KEY_BITS = 2048
ONLY_ROW = 1


@cache
def _authority(path: Path) -> Ed25519PrivateKey:
    return make_authority(path)


def authority_public() -> str:
    """What peers check passports with: base64 of the site's public key."""
    return public_text(_authority(settings.AUTHORITY_KEY_FILE))


def issue(user: User, device: Device, peer_key: str, collaboration: Collaboration) -> Passport:
    """Signs; the caller decides whether `user` may take part. Raises UserError on a bad key.

    The device is noted as a holder first: once it is shut out, the list of revocations names it.
    """
    _check_key(peer_key)
    claims = Claims(
        user=str(user.pk),
        device=device.pk.hex,
        peer_key=peer_key,
        collaboration=collaboration.slug,
        expires_at=time.time() + LIFETIME_S,
    )
    expires_at = datetime.fromtimestamp(claims.expires_at, UTC)
    if not note_passport(device, expires_at=expires_at):
        raise UserError("The account of this device was deleted.", kind="revoked")
    return sign(claims, _authority(settings.AUTHORITY_KEY_FILE))


def revocation_list() -> RevocationList:
    """Signs the devices that hold a passport and may not take part any more.

    Worked out from the database as it is, so that no act which shuts somebody out can forget it.
    The number grows with every change; it follows the clock, so that it grows even when the
    database comes from a backup.
    """
    state = Revoked.objects.first()
    if state is None or state.devices != _outlawed():
        with transaction.atomic():
            Revoked.objects.get_or_create(pk=ONLY_ROW)
            state = Revoked.objects.select_for_update().get(pk=ONLY_ROW)
            devices = _outlawed()
            if devices != state.devices or not state.number:
                state.devices, state.number = devices, max(state.number + 1, int(time.time()))
                state.save()
    revocations = Revocations(number=state.number, devices=state.devices)
    return sign_revocations(revocations, _authority(settings.AUTHORITY_KEY_FILE))


def _outlawed() -> list[str]:
    return outlawed(now=timezone.now(), most=MOST_REVOKED)


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
