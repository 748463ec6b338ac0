"""The web process: HTTP by Django, websockets by the live hub."""

from __future__ import annotations

import os
import warnings

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import URLPattern, path, re_path

# WhiteNoise's files, which are small: read whole, on a thread.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django_application = get_asgi_application()

# These need the apps that the line above loads.
from webapp.live.device_socket import serve_device  # noqa: E402
from webapp.live.hub import hub  # noqa: E402
from webapp.live.origins import SameOrigin  # noqa: E402
from webapp.live.sockets import Application, Receive, Scope, Send, refuse_politely  # noqa: E402
from webapp.live.viewer_sockets import view_collaboration, view_own_devices  # noqa: E402


async def serve_http(scope: Scope, receive: Receive, send: Send) -> None:
    """Snapshots over HTTP need the hub's boards, also in a process that has no websocket yet."""
    hub.start()
    await django_application(scope, receive, send)


def websocket(route: str, application: Application) -> URLPattern:
    """Channels routes websockets by Django's paths; their stubs know of views only."""
    return path(route, application)  # type: ignore[arg-type]


application = ProtocolTypeRouter(
    {
        "http": serve_http,
        "websocket": URLRouter(
            [
                websocket("ws/device/", serve_device),
                websocket("ws/c/<slug:slug>/", SameOrigin(view_collaboration)),
                websocket("ws/me/", SameOrigin(view_own_devices)),
                re_path(r"", refuse_politely),  # type: ignore[arg-type]
            ]
        ),
    }
)
