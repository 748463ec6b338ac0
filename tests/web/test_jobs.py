"""The timetable, and jobs that may run twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from django.utils.module_loading import import_string

from tests.factories import make_collaboration, make_device, make_session
from trainer.recipe import Finish
from webapp.celery import app
from webapp.collaborations.models import State
from webapp.collaborations.services import note_round
from webapp.devices.models import EnrolmentCode, Session
from webapp.devices.services import make_code
from webapp.evaluations import services as evaluations
from webapp.lab import services as lab
from webapp.live.models import Event
from webapp.registry import packing, pushing
from webapp.tokenizers import services as tokenizers


@pytest.fixture(scope="module")
def jobs():
    app.loader.import_default_modules()
    return app.tasks


def test_every_line_of_the_timetable_and_the_mail_job_is_known_to_the_job_runner(jobs):
    wanted = {line["task"] for line in app.conf.beat_schedule.values()}
    assert wanted <= set(jobs)
    assert "webapp.core.mail.deliver" in jobs


@pytest.mark.parametrize("asks", [tokenizers, lab, evaluations, packing, pushing])
def test_what_organisers_ask_for_is_known_to_the_job_runner(jobs, asks):
    assert asks.WORK in jobs and import_string(asks.WORK).name == asks.WORK


@pytest.mark.parametrize("line", app.conf.beat_schedule.values(), ids=lambda line: line["task"])
def test_b07_a_job_that_runs_twice_does_its_work_once(jobs, alice, line):
    collaboration = make_collaboration("short", finish=Finish(rounds=3))
    note_round(collaboration, 3)
    long_ago = timezone.now() - timedelta(days=30)
    make_session(make_device(alice)[0], collaboration, last_seen_at=long_ago)
    make_code(alice, collaboration=collaboration, device_name="lab-pc")
    EnrolmentCode.objects.update(expires_at=long_ago)
    counts = []
    for _ in range(2):
        jobs[line["task"]].delay()
        collaboration.refresh_from_db()
        counts.append(
            (
                EnrolmentCode.objects.count(),
                Session.objects.filter(ended_at=None).count(),
                Event.objects.filter(what=Event.What.LOST).count(),
                collaboration.state,
            )
        )
    assert counts[0] == counts[1]
    before = (1, 1, 0, State.RUNNING)
    changed = {
        "webapp.live.tasks.close_dead_sessions": (1, 0, 1, State.RUNNING),
        "webapp.devices.tasks.delete_expired_codes": (0, 1, 0, State.RUNNING),
        "webapp.collaborations.tasks.check_finish_rules": (1, 1, 0, State.FINISHED),
    }
    assert counts[0] == changed.get(line["task"], before)
