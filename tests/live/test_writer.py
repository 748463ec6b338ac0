"""The writer of a web process: no report is lost while the database is held, away or wrong."""

from __future__ import annotations

import asyncio
import threading
import time

from channels.db import database_sync_to_async
from django.db import OperationalError, connection, transaction

from tests.factories import make_device
from tests.live.agents import Agent, eventually, receipt
from webapp.credit.models import Receipt
from webapp.devices.models import Session
from webapp.live import writer
from webapp.live.store import store


async def test_b11_while_another_process_holds_the_lock_reports_wait_and_none_is_lost(
    live, alice, collaboration
):
    agent = Agent(await _token(alice))
    await agent.join()
    is_held, may_go = threading.Event(), threading.Event()

    def hold_the_lock():
        with transaction.atomic():
            list(Session.objects.select_for_update())
            is_held.set()
            may_go.wait(30)
        connection.close()

    holder = threading.Thread(target=hold_the_lock)
    holder.start()
    try:
        await eventually(is_held.is_set)
        for seq in range(1, 51):
            await agent.report(seq, receipt(seq))
        await agent.train(51, samples=16, loss=4.5)  # the live page does not wait for the database
        await eventually(lambda: live.rooms["demo"].board.snapshot(time.time())["samples"] == 16)
        assert await Receipt.objects.acount() == 0
    finally:
        may_go.set()
        holder.join()
    await agent.acked(50)
    assert await Receipt.objects.acount() == 50


async def test_b11_while_the_database_refuses_reports_wait_and_none_is_lost(
    live, alice, collaboration, monkeypatch
):
    tries = []

    def locked_at_first(items):
        tries.append(len(items))
        if len(tries) < 4:
            raise OperationalError("database is locked")
        return store(items)

    monkeypatch.setattr(writer, "store", locked_at_first)
    monkeypatch.setattr(writer, "FIRST_DELAY_S", 0.01)
    agent = Agent(await _token(alice))
    await agent.join()
    for seq in range(1, 51):
        await agent.report(seq, receipt(seq))
    await agent.acked(50)
    assert await Receipt.objects.acount() == 50
    assert len(tries) >= 4


async def test_a_hub_that_stops_waits_for_the_write_under_way(live, alice, collaboration):
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def slow_write():
        begun.set()
        may_end.wait(30)
        ended.set()

    live.spawn(live.writer.call(slow_write))
    await asyncio.to_thread(begun.wait, 30)
    stopping = asyncio.create_task(live.stop())
    await asyncio.sleep(0)
    may_end.set()
    await stopping
    assert ended.is_set()


async def test_a_report_that_cannot_be_stored_holds_up_only_its_own_session(
    live, alice, collaboration, monkeypatch
):
    bad = Agent(await _token(alice))
    good = Agent(await _token(alice))
    await bad.join()
    await good.join()

    def picky(items):
        if any(session_id.hex == bad.session for session_id, _ in items):
            raise ValueError("no such thing")
        return store(items)

    monkeypatch.setattr(writer, "store", picky)
    await bad.report(1, receipt(1))
    await good.report(1, receipt(1))
    await good.acked(1)
    refused = await bad.hear()
    assert refused.retry_after_s == 60
    assert "could not store" in refused.reason
    await eventually(lambda: Receipt.objects.count() == 1)


async def _token(user):
    return (await database_sync_to_async(make_device)(user))[1]
