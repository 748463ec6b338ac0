"""Browsers' websockets are open to the site's own pages only.

Browsers send cookies to a websocket from any page, so its Origin must be one of the site's: scheme,
host and port exactly. Configuration says which they are, never a header a proxy may rewrite.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings

from webapp.live.sockets import FORBIDDEN, Application, Gone, Receive, Scope, Send, Socket

DEFAULT_PORTS = {"http": 80, "https": 443}


def allowed_origins() -> set[tuple[str, str, int | None]]:
    """(scheme, host, port): of SITE_URL, and the same with each exact name in ALLOWED_HOSTS."""
    scheme, host, port = origin_of(settings.SITE_URL) or ("http", "", None)
    exact = {name for name in settings.ALLOWED_HOSTS if not name.startswith((".", "*"))}
    return {(scheme, name.lower(), port) for name in {host, *exact}}


def origin_of(text: str) -> tuple[str, str, int | None] | None:
    """None where the text is no origin, such as `null` or nothing."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname or parts.path.strip("/") or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port or DEFAULT_PORTS.get(parts.scheme)


class SameOrigin:
    """ASGI middleware: refuses a websocket before it is accepted, with HTTP 403."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = Socket(scope, receive, send)
        origin = origin_of(socket.header(b"origin"))
        if origin is None or origin not in allowed_origins():
            try:
                await socket.close_before_accepting(FORBIDDEN)
            except Gone:
                return
        else:
            await self._application(scope, receive, send)
