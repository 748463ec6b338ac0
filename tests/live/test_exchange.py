"""Several web processes show one state; without a broker each goes on alone."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
import uuid
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from tests.factories import make_device, make_session
from tests.live.agents import Agent, Viewer, receipt
from webapp.devices.models import Session
from webapp.live.exchange import Exchange
from webapp.live.hub import Hub, hub
from webapp.live.mailbox import Mailbox
from webapp.live.models import Event
from webapp.live.tasks import close_dead_sessions
from webapp.ops.embedded import valkey_command


async def until(condition):
    async with asyncio.timeout(15):
        while not condition():
            await asyncio.sleep(0.01)


async def test_another_web_process_shows_the_same_members_and_events(live, token):
    other = Hub()
    other.start()
    try:
        mailbox = Mailbox()
        await other.enter("demo", mailbox)
        agent = Agent(token)
        await agent.join()
        await agent.train(3, samples=16, loss=4.5)
        for hub in (live, other):
            await until(lambda hub=hub: hub.rooms["demo"].shown.get("loss") == 4.5)
        assert other.rooms["demo"].shown["members"] == live.rooms["demo"].shown["members"]
        await agent.report(1, receipt(2))
        await until(lambda: (other.rooms["demo"].shown["last_round"] or {}).get("round") == 2)
    finally:
        await other.stop()


async def test_a_device_that_moves_to_another_process_is_cut_off_in_the_first(live, token):
    agent = Agent(token)
    await agent.join()
    device = next(device for device, _ in live.links)
    await live.exchange._layer.group_send(
        "hub",
        {
            "type": "hub.attached",
            "sender": "elsewhere",
            "device": device,
            "slug": "demo",
            "session": uuid.uuid4().hex,
        },
    )
    assert "started again on this device" in (await agent.hear()).reason
    assert await agent.close_code() == 4409


@pytest.mark.parametrize("act", ["send", "settle"])
async def test_a_cancellation_that_the_broker_client_swallows_still_ends_the_task(act):
    class Swallowing:
        async def group_send(self, group, message):
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

        async def group_add(self, group, channel):
            await self.group_send(group, channel)

    exchange = Exchange(lambda message: None)
    exchange._layer, exchange._channel = Swallowing(), "mine"
    task = asyncio.create_task(exchange.send("hub.news") if act == "send" else exchange.settle())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_without_a_broker_reports_are_stored_and_frames_go_on(
    settings, tmp_path, transactional_db, token, caplog
):
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [f"unix://{tmp_path}/nobody-listens"]},
        }
    }
    hub.start()
    try:
        viewer = Viewer()
        await viewer.connect()
        agent = Agent(token)
        await agent.join()
        await agent.train(3, samples=16, loss=4.5)
        await viewer.sees(lambda viewer: viewer.state["loss"] == 4.5)
        await agent.report(1, receipt(2))
        await agent.acked(1)
        await viewer.sees(lambda viewer: 2 in viewer.rounds)
    finally:
        await hub.stop()
    complaints = [line for line in caplog.messages if "going on alone" in line]
    assert len(complaints) == 1


async def test_b04_a_session_whose_web_process_died_is_closed_and_viewers_are_told(
    live, alice, collaboration
):
    viewer = Viewer()
    await viewer.connect()
    await viewer.frame()

    def long_ago():
        device = make_device(alice)[0]
        session = make_session(device, collaboration)
        dead = timezone.now() - timedelta(minutes=5)
        Session.objects.filter(pk=session.pk).update(last_seen_at=dead)
        close_dead_sessions()

    await database_sync_to_async(long_ago)()
    await viewer.sees(lambda viewer: viewer.events)
    assert (viewer.events[0]["what"], viewer.events[0]["who"]) == ("lost", "alice")
    assert (await Event.objects.aget()).text.startswith("lost: no sign of life for 60 s")


async def test_processes_find_each_other_again_after_the_broker_was_killed(
    settings, tmp_path, transactional_db, token
):
    place = Path(tempfile.mkdtemp(dir="/tmp")) / "valkey.sock"  # a socket's path must be short
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [f"unix://{place}"]},
        }
    }
    command = valkey_command(place, tmp_path / "valkey")
    hubs = (hub, Hub())
    valkey = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        await until(place.exists)
        for each in hubs:
            each.start()
        await hubs[1].enter("demo", Mailbox())
        agent = Agent(token)
        await agent.join()
        await agent.train(3, samples=16, loss=4.5)
        await until(lambda: hubs[1].rooms["demo"].shown.get("loss") == 4.5)
        valkey.kill()
        valkey.wait()
        valkey = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        await agent.train(3, samples=32, loss=4.25)
        await until(lambda: hubs[1].rooms["demo"].shown.get("loss") == 4.25)
    finally:
        for each in hubs:
            await each.stop()
        valkey.kill()
        valkey.wait()
        shutil.rmtree(place.parent)
