"""Tells connected agents and pages that something changed, once the change is committed.

Groups: `device.<device id>` (one agent) and `collaboration.<slug>` (all of its agents). A push
is a hint to look again, never the news itself, so a lost one only delays what happens anyway.
Each message carries its `group`, so that one listener per process can serve many groups.
"""

from __future__ import annotations

import logging
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)
CONTROL_CHANGED = {"type": "control.changed"}


def push(group: str, message: dict[str, Any]) -> None:
    """Sends `message` to the consumers of `group` after the current transaction commits."""
    transaction.on_commit(lambda: _send(group, message), robust=True)


def push_control(*, device_id: object = None, slug: str = "") -> None:
    """Asks the agents of one device, or of one collaboration, to work out their control anew."""
    push(f"device.{device_id}" if device_id else f"collaboration.{slug}", CONTROL_CHANGED)


def _send(group: str, message: dict[str, Any]) -> None:
    try:
        async_to_sync(get_channel_layer().group_send)(group, {**message, "group": group})
    except (OSError, RedisError) as error:
        logger.warning("no push to %s: the message broker does not answer (%s)", group, error)
