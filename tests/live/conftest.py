"""Agents and viewers that speak to the real ASGI application, each on its own websocket."""

from __future__ import annotations

import asyncio
import time

import pytest
from django.db import connection
from django.test import Client

from tests.factories import make_device
from webapp.live import beat
from webapp.live.hub import hub
from webapp.live.threads import in_thread

OTHERS_AT_WORK = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
"""


@pytest.fixture
def shared_db(transactional_db):
    """A database that threads and processes of the test use too: it is emptied when they are done.

    PostgreSQL goes on with a statement whose process was killed, and emptying the tables beside it
    ends in a deadlock.
    """
    yield
    if connection.vendor != "postgresql":
        return
    deadline = time.monotonic() + 30
    while _others_at_work():
        assert time.monotonic() < deadline, "somebody still uses the database"
        time.sleep(0.02)


def _others_at_work() -> int:
    with connection.cursor() as cursor:
        cursor.execute(OTHERS_AT_WORK)
        return cursor.fetchone()[0]


@pytest.fixture
async def live(shared_db, monkeypatch):
    """The hub of this test's event loop, with a quick beat; stopped at the end."""
    monkeypatch.setattr(beat, "EVERY_S", 0.05)
    monkeypatch.setattr(beat, "FACTS_EVERY_S", 0.2)
    hub.start()
    yield hub
    # Sockets that a test left open would still be reading while the tables are emptied.
    sockets = asyncio.all_tasks() - {asyncio.current_task()}
    for task in sockets:
        task.cancel()
    await asyncio.gather(*sockets, return_exceptions=True)
    await hub.stop()
    await in_thread(lambda: None)  # the read of a cancelled task has its thread still


@pytest.fixture
def token(shared_db, alice, collaboration):
    """Of a device of alice's."""
    return make_device(alice)[1]


@pytest.fixture
def browser(alice):
    """A test client in which alice is logged in."""
    client = Client()
    client.force_login(alice)
    return client
