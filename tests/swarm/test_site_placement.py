"""Unequal devices on a real site: one whose owner picked no collaboration, one that is very small.

After `test_site_agents.py`, on the same site.
"""

from __future__ import annotations

import signal
from functools import partial

import pytest

from tests.swarm.site import Site
from tests.throttle import Throttle
from tests.waiting import wait_for
from trainer.engine import checkpoint
from trainer.engine.learner import Learner
from trainer.recipe import Recipe

LONGEST_ROUND_S = 30 + 2 + 20  # of the demo's recipe: deadline, matchmaking and average
pytestmark = pytest.mark.swarm

OPEN_ANOTHER = """
from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration
from webapp.collaborations.services import create, open_
recipe = Collaboration.objects.get(slug="demo").recipe
by = User.objects.filter(is_staff=True).first()
other = create(title="Other", by=by, recipe=recipe.model_copy(update={"collaboration": "other"}))
open_(other, by=by)
"""
ACT = """
from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration
from webapp.collaborations import services
by = User.objects.filter(is_staff=True).first()
services.{act}(Collaboration.objects.get(slug="{slug}"), by=by)
"""
CODE = """
from webapp.accounts.models import User
from webapp.devices.services import make_code
user, _ = User.objects.get_or_create(email="paula@example.org", defaults=dict(name="paula"))
print("code:", make_code(user, collaboration=None, device_name="paula"))
"""


KEEP = """
from pathlib import Path
from webapp.artifacts.models import Checkpoint
from webapp.artifacts.services import register_file
from webapp.collaborations.models import Collaboration
artifact = register_file(Path("{path}"), "checkpoint", title="demo")
demo = Collaboration.objects.get(slug="demo")
Checkpoint.objects.create(collaboration=demo, artifact=artifact, round=0)
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


def test_it_gets_the_one_that_needs_it_and_another_when_that_is_over(site):
    site.wait_for_rounds(1)  # so the demo's volunteer is at work
    site.manage("shell", "-v", "0", "-c", OPEN_ANOTHER)
    said = site.manage("shell", "-v", "0", "-c", CODE)
    agent = site.agent_of(said.split("code:", 1)[1].split()[0], "paula")
    wait_for("credit where no other device is", partial(credited, site, "other", 0))
    act(site, "finish", "other")
    wait_for("credit in the one that goes on", partial(credited, site, "demo", 1))
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(40) == 0
    said = site.said("paula")
    assert "The site gave this device Other. Of 2 open collaborations" in said
    assert "The site is asked for another collaboration." in said and "Traceback" not in said


def test_a_device_of_half_a_core_and_1_gib_takes_part_and_nobody_waits_for_it(site):
    try:
        small = Throttle("small", cores=0.5, memory_bytes=2**30)
    except OSError as error:
        pytest.skip(f"no control groups can be made here: {error}")
    agent = site.agent("rosa")
    small.take(agent.pid)
    wait_for("credit for three rounds", lambda: len(rounds_of(site, "rosa")) >= 3)
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0
    assert small.num_killed() == 0
    small.remove()
    assert "Traceback" not in site.said("rosa")
    ended_at = dict(
        site.rows("select round, julianday(at) * 86400 from live_roundrecord where outcome='clean'")
    )
    took = [ended_at[n] - ended_at[n - 1] for n in rounds_of(site, "rosa") if n - 1 in ended_at]
    assert took and max(took) < LONGEST_ROUND_S


@pytest.mark.soak  # its parts are proven in tests/web/test_evaluating_agents.py
def test_a_device_that_is_too_small_to_train_measures_checkpoints_and_has_credit_for_it(site):
    try:
        tiny = Throttle("tiny", cores=0.5, memory_bytes=720 * 2**20)
    except OSError as error:
        pytest.skip(f"no control groups can be made here: {error}")
    ((recipe,),) = site.rows(
        "select recipe_json from collaborations_revision r join collaborations_collaboration c "
        "on c.id = r.collaboration_id where c.slug = 'demo'"
    )
    path = site.folder / checkpoint.filename(0)
    Learner(Recipe.model_validate_json(recipe), 0).save(path)
    site.manage("shell", "-v", "0", "-c", KEEP.format(path=path))
    agent = site.agent("tina")
    tiny.take(agent.pid)
    credit = (
        "select evaluated, c.samples from credit_hourlycredit c "
        "join devices_device d on d.id = c.device_id where d.name = 'tina'"
    )
    wait_for("credit for a part", lambda: any(tokens for tokens, _ in site.rows(credit)))
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0
    assert tiny.num_killed() == 0
    tiny.remove()
    assert all(samples == 0 for _, samples in site.rows(credit))
    said = site.said("tina")
    assert "it measures the model with parts of the held-out text instead" in said
    assert "evaluating: part" in said and "Traceback" not in said
    measured = site.rows("select loss_sum / tokens from held_out_part where tokens > 0")
    assert measured and all(0 < loss < 20 for (loss,) in measured)


def rounds_of(site: Site, device: str) -> list[int]:
    """Those that it has credit for."""
    found = site.rows(
        "select r.round from credit_receipt r join devices_session s on s.id = r.session_id "
        f"join devices_device d on d.id = s.device_id where d.name = '{device}' and r.accepted"
    )
    return [number for (number,) in found]
