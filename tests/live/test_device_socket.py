"""Agents on their websocket: let in or told why not, reports stored once, shut out at once."""

from __future__ import annotations

import asyncio
import uuid

from channels.db import database_sync_to_async

from tests.factories import make_device
from tests.live.agents import Agent, eventually, receipt
from trainer.wire import (
    Bye,
    Control,
    LeaveCause,
    Wish,
)
from webapp.accounts.services import ban
from webapp.collaborations import services as collaborations
from webapp.credit.models import HourlyCredit
from webapp.credit.models import Receipt as StoredReceipt
from webapp.devices.models import Session
from webapp.devices.services import revoke
from webapp.live import device_socket
from webapp.live.models import Event


async def test_an_agent_is_welcomed_with_the_sites_time_and_what_to_do(live, token):
    welcome = await Agent(token).join()
    assert welcome.stored_seq == 0
    assert welcome.control == Control(wish=Wish.RUN)
    event = await eventually(Event.objects.first)
    assert (event.what, event.text) == ("joined", "joined")


async def test_reports_repeated_and_reordered_are_stored_once_and_acked_in_order(live, token):
    agent = Agent(token)
    await agent.join()
    for seq in (2, 1, 2, 4, 1, 4, 3, 3, 5, 2):
        await agent.report(seq, receipt(seq, samples=10))
    await agent.acked(5)
    seqs = await database_sync_to_async(
        lambda: sorted(StoredReceipt.objects.values_list("seq", flat=True))
    )()
    assert seqs == [1, 2, 3, 4, 5]
    credit = await HourlyCredit.objects.aget()
    assert (credit.samples, credit.rounds) == (50, 5)


async def test_what_lies_behind_a_gap_is_not_acknowledged(live, token):
    agent = Agent(token)
    await agent.join()
    await agent.report(1, receipt(1))
    await agent.report(3, receipt(3))
    await agent.acked(1)
    assert await StoredReceipt.objects.acount() == 1
    await agent.report(2, receipt(2))
    await agent.acked(3)


async def test_an_agent_that_lost_the_acknowledgement_sends_again_and_nothing_doubles(live, token):
    agent = Agent(token)
    await agent.join()
    for seq in (1, 2, 3):
        await agent.report(seq, receipt(seq, samples=10))
    await agent.leave()  # before any acknowledgement was read
    again = Agent(token, session=agent.session)
    welcome = await again.join()
    assert welcome.stored_seq <= 3
    for seq in (1, 2, 3, 4):
        await again.report(seq, receipt(seq, samples=10))
    await again.acked(4)
    credit = await HourlyCredit.objects.aget()
    assert (credit.samples, credit.rounds) == (40, 4)
    assert await Event.objects.filter(what="joined").acount() == 1


async def test_two_sockets_of_one_session_store_each_report_once(live, token):
    first = Agent(token)
    await first.join()
    second = Agent(token, session=first.session)
    await second.join()
    for seq in range(1, 6):
        await second.report(seq, receipt(seq, samples=10))
    await second.acked(5)
    assert await StoredReceipt.objects.acount() == 5
    assert await first.close_code() == 4409


async def test_a01_a_restarted_device_is_accepted_at_once_and_its_old_session_has_ended(
    live, token
):
    old = Agent(token)
    await old.join()
    new = Agent(token)
    await new.join()
    ended = await Session.objects.aget(pk=uuid.UUID(old.session))
    assert ended.end_cause == LeaveCause.REPLACED
    assert "started again" in (await old.refusal()).reason
    assert live.rooms["demo"].board.snapshot(ended.started_at.timestamp() + 1)["online"] == 1


async def test_a_device_revoked_in_mid_session_is_told_and_cut_off(live, alice, collaboration):
    device, token = await database_sync_to_async(make_device)(alice)
    agent = Agent(token)
    await agent.join()
    await agent.report(1, receipt(1))
    await agent.acked(1)
    await database_sync_to_async(revoke)(device, by=alice, reason="sold")
    control = await agent.hear()
    assert (control.wish, control.cause) == (Wish.STOP, LeaveCause.REVOKED)
    assert "sold" in control.reason
    assert await agent.close_code() == 4403
    session = await eventually(Session.objects.filter(end_cause="revoked").first)
    assert session.id.hex == agent.session
    assert live.rooms["demo"].board.snapshot(0)["online"] == 0


async def test_a_volunteer_banned_in_mid_session_reads_the_reason(live, alice, olga, token):
    agent = Agent(token)
    await agent.join()
    await database_sync_to_async(ban)(alice, by=olga, reason="sent noise")
    control = await agent.hear()
    assert control.cause == LeaveCause.BANNED
    assert "sent noise" in control.reason


async def test_pause_and_resume_reach_the_agent_with_the_reason(live, token, collaboration, olga):
    agent = Agent(token)
    await agent.join()
    await database_sync_to_async(collaborations.pause)(
        collaboration, by=olga, reason="moving house"
    )
    control = await agent.hear()
    assert (control.wish, control.reason) == (Wish.PAUSE, "moving house")
    await database_sync_to_async(collaborations.resume)(collaboration, by=olga)
    assert (await agent.hear()).wish == Wish.RUN


async def test_a_good_bye_ends_the_session_and_is_acknowledged(live, token):
    agent = Agent(token)
    await agent.join()
    await agent.report(1, Bye(cause=LeaveCause.STOPPED, reason="Ctrl-C"))
    await agent.acked(1)
    session = await Session.objects.aget()
    assert (session.end_cause, session.end_reason) == ("stopped", "Ctrl-C")
    assert (await Event.objects.aget(what="left")).text == "left: Ctrl-C"


async def test_b04_a_cut_connection_counts_as_lost_after_the_grace(live, token, monkeypatch):
    monkeypatch.setattr(device_socket, "GRACE_S", 0.1)
    agent = Agent(token)
    await agent.join()
    await agent.leave()
    session = await eventually(Session.objects.filter(ended_at__isnull=False).first)
    assert session.end_cause == LeaveCause.LOST
    assert (await Event.objects.aget(what="lost")).text.startswith("lost: the connection broke off")
    assert live.rooms["demo"].board.snapshot(0)["online"] == 0


async def test_an_agent_that_is_back_within_the_grace_was_never_lost(live, token, monkeypatch):
    monkeypatch.setattr(device_socket, "GRACE_S", 0.3)
    agent = Agent(token)
    await agent.join()
    await agent.leave()
    again = Agent(token, session=agent.session)
    await again.join()
    await asyncio.sleep(0.5)  # longer than the grace: nothing must happen in it
    assert await Event.objects.filter(what="lost").acount() == 0
    assert (await Session.objects.aget()).ended_at is None


async def test_a_session_that_was_lost_opens_again_and_says_so(live, token, monkeypatch):
    monkeypatch.setattr(device_socket, "GRACE_S", 0.0)
    agent = Agent(token)
    await agent.join()
    await agent.leave()
    await eventually(Session.objects.filter(end_cause="lost").first)
    again = Agent(token, session=agent.session)
    await again.join()
    assert (await Session.objects.aget()).ended_at is None
    texts = [event.text async for event in Event.objects.order_by("pk")]
    assert (texts[0], texts[-1]) == ("joined", "came back")
