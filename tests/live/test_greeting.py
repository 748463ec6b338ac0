"""Who is let in, and what the others are told."""

from __future__ import annotations

import pytest
from channels.db import database_sync_to_async

from tests.factories import make_device
from tests.live.agents import Agent
from trainer.wire import MAX_MESSAGE_BYTES, WIRE_VERSION, LeaveCause, Role
from webapp.live import greeting


async def test_an_unknown_token_is_refused_in_words(live, token):
    agent = Agent("no-such-token")
    assert await agent.connect()
    refused = await agent.refusal()
    assert "knows no such device any more" in refused.reason
    assert "press Join" in refused.next_step
    assert refused.retry_after_s is None


@pytest.mark.parametrize("version", [0, WIRE_VERSION + 1])
async def test_an_agent_of_another_version_is_told_to_update(live, token, version):
    agent = Agent(token)
    await agent.connect()
    await agent.say(agent.hello(version=version))
    refused = await agent.refusal()
    assert "update" in refused.reason
    assert str(version) in refused.reason


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"kind": "nonsense"}', '{"kind": "progress"}', "\x00" * 9, '{"kind": NaN}']
)
async def test_a_malformed_message_is_refused_in_words_and_ends_the_socket(live, token, text):
    agent = Agent(token)
    await agent.join()
    await agent.say_text(text)
    assert "could not read a message" in (await agent.refusal()).reason


async def test_a_message_over_the_limit_is_refused(live, token):
    agent = Agent(token)
    await agent.join()
    await agent.say_text("x" * (MAX_MESSAGE_BYTES + 1))
    assert "65,537 bytes" in (await agent.refusal()).reason


async def test_an_agent_that_says_nothing_is_refused(live, token, monkeypatch):
    monkeypatch.setattr(greeting, "HELLO_WITHIN_S", 0.05)
    agent = Agent(token)
    await agent.connect()
    assert "No hello" in (await agent.refusal()).reason


async def test_a_banned_volunteer_reads_the_reason(live, collaboration, mallory):
    _, token = await database_sync_to_async(make_device)(mallory)
    agent = Agent(token)
    await agent.connect()
    await agent.say(agent.hello())
    refused = await agent.refusal()
    assert "sent made-up samples" in refused.reason
    assert refused.cause == LeaveCause.BANNED


async def test_a_volunteers_device_cannot_pose_as_coordinator(live, token):
    agent = Agent(token)
    await agent.connect()
    await agent.say(agent.hello(role=Role.COORDINATOR))
    assert "Only the site's own device may coordinate" in (await agent.refusal()).reason
