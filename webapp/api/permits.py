"""Who may download a file: by a browser's session, or by the token of a device that trains."""

from __future__ import annotations

from django.http import HttpRequest

from webapp.api.gates import MAX_TOKEN_LENGTH
from webapp.artifacts.models import OF_CHECKPOINTS, Artifact
from webapp.artifacts.selectors import download_refusal, owners_of
from webapp.collaborations.grants import admit
from webapp.core.errors import UserError
from webapp.devices.selectors import device_by_token

ANYBODYS = "public, max-age=31536000, immutable"
ASK_EACH_TIME = "private, no-cache"  # who may have it can change


def caching_of(artifact: Artifact) -> str:
    """What others may do with a copy of it."""
    return ASK_EACH_TIME if artifact.kind in OF_CHECKPOINTS else ANYBODYS


def refusal_of(request: HttpRequest, artifact: Artifact) -> str:
    """Why who asks may not have it, in words; "" where they may."""
    why = download_refusal(request.user, artifact)
    return "" if why and _is_for_a_device(request, artifact) else why


def _is_for_a_device(request: HttpRequest, artifact: Artifact) -> bool:
    """Whether a device asks that takes part, or would, and needs it for that."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not 0 < len(token) <= MAX_TOKEN_LENGTH:
        return False
    device = device_by_token(token)
    if device is None:
        return False
    for collaboration in owners_of(artifact) or []:
        try:
            admit(device, collaboration)
        except UserError:
            continue
        return True
    return False
