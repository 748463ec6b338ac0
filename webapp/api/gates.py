"""What stands before an operation: device tokens, rate limits, the size of a body."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import get_adapter
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja.errors import HttpError, Throttled
from ninja.parser import Parser
from ninja.security import HttpBearer
from ninja.throttling import BaseThrottle

from webapp.core.errors import UserError
from webapp.core.limits import seconds_to_wait, window_ends_in
from webapp.devices.models import Device
from webapp.devices.selectors import device_by_token

MAX_BODY_BYTES = 16 * 1024
MAX_TOKEN_LENGTH = 200
MINUTE_S = 60


def address_of(request: HttpRequest) -> str:
    """The caller's address; a proxy's header is believed only as TRUSTED_PROXY_COUNT says.

    A site behind a unix socket has none: then all callers without one share their limits.
    """
    try:
        return get_adapter().get_client_ip(request)
    except PermissionDenied:
        return "unknown"


class DeviceRequest(HttpRequest):
    """A request that DeviceToken let through."""

    auth: Device


class DeviceToken(HttpBearer):
    """`request.auth` is then the device. Guessing is slowed down by address."""

    def authenticate(self, request: HttpRequest, token: str) -> Device | None:
        device = device_by_token(token) if len(token) <= MAX_TOKEN_LENGTH else None
        if device is None:
            wait_s = seconds_to_wait(
                f"bad-token:{address_of(request)}", limit=30, window_s=MINUTE_S
            )
            if wait_s:
                raise Throttled(wait=wait_s)
            return None
        if device.is_revoked:
            raise UserError(
                f"This device was revoked. {device.revoked_reason}".strip(),
                "Download a new launcher on the Join page.",
                kind="revoked",
            )
        return device


class PerMinute(BaseThrottle):
    """So many calls a minute from one device, or from one address where there is no device."""

    def __init__(self, scope: str, limit: int) -> None:
        self.scope = scope
        self.limit = limit

    def seconds_to_wait(self, request: HttpRequest) -> int:
        device = getattr(request, "auth", None)
        who = device.pk if isinstance(device, Device) else address_of(request)
        return seconds_to_wait(f"{self.scope}:{who}", limit=self.limit, window_s=MINUTE_S)

    def allow_request(self, request: HttpRequest) -> bool:
        return not self.seconds_to_wait(request)

    def wait(self) -> float:
        """All windows end together, so this needs to know nothing of the request."""
        return window_ends_in(MINUTE_S)


class BoundedParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        if len(request.body) > MAX_BODY_BYTES:
            raise HttpError(413, f"The request is larger than {MAX_BODY_BYTES} bytes.")
        return super().parse_body(request)
