"""Rounds and events as anybody may see them: no device, address or private name."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.crypto import salted_hmac

from webapp.accounts.selectors import is_system, public_name
from webapp.artifacts.models import Checkpoint
from webapp.live.models import Event, RoundRecord


def row_of(slug: str, device_id: UUID | str) -> str:
    """Names a device on public pages of one collaboration; nobody can work the device out of it."""
    return salted_hmac("live.row", f"{slug}:{device_id}").hexdigest()[:8]


def public_round(record: RoundRecord) -> dict[str, Any]:
    return {
        "round": record.round,
        "outcome": record.outcome,
        "members": record.members,
        "samples": record.samples,
        "tokens": record.tokens,
        "loss": record.loss,
        "held_out_loss": record.held_out_loss,
        "duration_s": record.duration_s,
        "num_lost": record.num_lost,
        "asked": record.asked,
        "reason": record.reason,
        "at": record.at.timestamp(),
    }


def public_checkpoint(
    checkpoint: Checkpoint, has_adapter: bool, *, for_all: bool
) -> dict[str, Any]:
    """One that is kept; load `artifact` with it. Unless it is `for_all`, where it is is not told:
    a frame goes to everybody.
    """
    artifact = checkpoint.artifact
    known = {
        "round": checkpoint.round,
        "loss": checkpoint.loss,
        "at": checkpoint.created_at.timestamp(),
    }
    if artifact is None or not for_all:
        return known | {"size_bytes": None, "sha256": "", "url": "", "adapter_url": ""}
    return known | {
        "size_bytes": artifact.size_bytes,
        "sha256": artifact.sha256,
        "url": reverse("artifact", args=[artifact.sha256, artifact.filename]),
        "adapter_url": reverse("adapter", args=[artifact.sha256]) if has_adapter else "",
    }


def public_event(event: Event, *, viewer: Any = None) -> dict[str, Any]:
    """`who` is empty where an event is about nobody. Load `device__owner` with the event."""
    owner = event.device.owner if event.device else None
    hidden = owner is None or is_system(owner)
    return {
        "id": event.pk,
        "at": event.at.timestamp(),
        "what": event.what,
        "who": "" if hidden else public_name(owner, viewer=viewer),
        "text": event.text,
    }
