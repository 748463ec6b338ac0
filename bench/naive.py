"""What the live area is compared with: a group of one channel per viewer, one INSERT per report."""

from __future__ import annotations

import json
import os
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django_application = get_asgi_application()
GROUP = "naive"


class GroupViewer(AsyncWebsocketConsumer):
    async def connect(self) -> None:
        await self.channel_layer.group_add(GROUP, self.channel_name)
        await self.accept()

    async def new_frame(self, message: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(message["frame"]))


class InsertingAgent(AsyncWebsocketConsumer):
    """`/agent/<session>/`: stores each report by itself, then acknowledges it."""

    async def receive(self, text_data: str = "", bytes_data: bytes | None = None) -> None:
        from channels.db import database_sync_to_async

        from trainer.wire import Ack, Report, read_from_agent

        report = read_from_agent(text_data)
        assert isinstance(report, Report)
        await database_sync_to_async(self._insert)(report)
        await self.send(text_data=Ack(seq=report.seq).model_dump_json())

    def _insert(self, report: Any) -> None:
        from django.utils import timezone

        from webapp.credit.models import Receipt

        Receipt.objects.get_or_create(
            session_id=self.scope["url_route"]["kwargs"]["session"],
            seq=report.seq,
            defaults={
                "round": report.body.round,
                "samples": report.body.samples,
                "tokens": report.body.tokens,
                "accepted": report.body.accepted,
                "at": timezone.now(),
            },
        )


application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": URLRouter(
            [
                path("viewer/", GroupViewer.as_asgi()),
                path("agent/<uuid:session>/", InsertingAgent.as_asgi()),
            ]
        ),
    }
)
