"""A device whose owner picked no collaboration, on a real site with two of them.

After `test_site_agents.py`, on the same site.
"""

from __future__ import annotations

import signal
from functools import partial

import pytest

from tests.swarm.site import Site
from tests.waiting import wait_for

pytestmark = pytest.mark.swarm

OPEN_ANOTHER = """
from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration
from webapp.collaborations.services import create, open_
recipe = Collaboration.objects.get(slug="demo").recipe
by = User.objects.filter(is_organiser=True).first()
other = create(title="Other", by=by, recipe=recipe.model_copy(update={"collaboration": "other"}))
open_(other, by=by)
"""
ACT = """
from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration
from webapp.collaborations import services
by = User.objects.filter(is_organiser=True).first()
services.{act}(Collaboration.objects.get(slug="{slug}"), by=by)
"""
CODE = """
from webapp.accounts.models import User
from webapp.devices.services import make_code
user, _ = User.objects.get_or_create(email="paula@example.org", defaults=dict(name="paula"))
print("code:", make_code(user, collaboration=None, device_name="paula"))
"""


def act(site: Site, act: str, slug: str) -> None:
    site.manage("shell", "-v", "0", "-c", ACT.format(act=act, slug=slug))


def credited(site: Site, slug: str, since: int) -> bool:
    """Whether the device has credit there, in a session after the first `since`."""
    found = site.rows(
        "select c.slug, (select count(*) from credit_receipt r where r.session_id = s.id "
        "and r.accepted) from devices_session s join devices_device d on d.id = s.device_id "
        "join collaborations_collaboration c on c.id = s.collaboration_id "
        "where d.name = 'paula' order by s.started_at"
    )
    return any(where == slug and receipts for where, receipts in found[since:])


def test_it_gets_the_one_that_needs_it_and_another_when_that_pauses(site):
    site.manage("shell", "-v", "0", "-c", OPEN_ANOTHER)
    said = site.manage("shell", "-v", "0", "-c", CODE)
    agent = site.agent_of(said.split("code:", 1)[1].split()[0], "paula")
    wait_for("credit where no other device is", partial(credited, site, "other", 0))
    act(site, "pause", "other")
    wait_for("credit in the one that goes on", partial(credited, site, "demo", 1))
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(40) == 0
    said = site.said("paula")
    assert "The site gave this device Other. Of 2 open collaborations" in said
    assert "It moves on to " in said and "Traceback" not in said
    act(site, "finish", "other")
