"""An organiser sees why a collaboration's coordinator does not stay up."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_collaboration, make_device, make_session, make_user
from trainer.wire import LeaveCause
from webapp.devices.services import close_session

WHY = "the engine stopped: <the base> cannot be loaded"


@pytest.fixture
def page(client, db):
    client.force_login(make_user("Olga", is_staff=True))
    collaboration = make_collaboration("demo", state="open")
    device, _ = make_device(make_user("site"), "demo")

    def begun(minutes: float):
        at = timezone.now() - timedelta(minutes=minutes)
        return make_session(device, collaboration, role="coordinator", started_at=at)

    def shown() -> str:
        return client.get("/console/c/demo/").content.decode()

    return begun, shown


def test_a_failure_is_told_until_the_coordinator_stays_up(page):
    begun, shown = page
    close_session(begun(9), cause=LeaveCause.FAILED, reason=WHY)
    assert "&lt;the base&gt; cannot be loaded" in shown()
    again = begun(0.5)
    assert "stops again and again" in shown()
    again.started_at -= timedelta(minutes=3)
    again.save()
    assert "stops again and again" not in shown()


def test_an_end_in_order_is_no_failure(page):
    begun, shown = page
    close_session(begun(9), cause=LeaveCause.FAILED, reason=WHY)
    close_session(begun(5), cause=LeaveCause.STOPPED, reason="the site stopped")
    assert "stops again and again" not in shown()
