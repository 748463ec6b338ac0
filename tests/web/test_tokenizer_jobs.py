"""The job that makes a tokenizer: what ends it, what it says then, and that it is done once."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.at_once import alone
from tests.trainer.bengali import EVERYTHING
from tests.waiting import wait_for
from tests.web.makings import add_text, claimed, programs
from trainer.tokenizing import Wanted
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.storage import absolute_path
from webapp.audit.models import Entry
from webapp.core.jobs import SILENT, State
from webapp.tokenizers import services, tasks
from webapp.tokenizers.models import Making
from webapp.tokenizers.program import do

PAGE = "/console/tokenizers/"
DEADLINE_S = 60.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n \n", "there is no text in 1 file."),
        (b"\xff\xfe\xff\n" * 9, "there is no text in 1 file; 0-odd.txt: it is UTF-16"),
        (b"\x89PNG\n\xff\xff\n", "2 lines cannot be read, the first one is line 1 of 0-odd.txt"),
    ],
)
def test_texts_that_are_none_are_refused_with_the_reason(text, tmp_path, content, words):
    making = claimed(add_text(tmp_path, "odd.txt", content))
    do(making, threading.Event())
    making.refresh_from_db()
    assert making.state == State.FAILED and words in making.reason
    assert not Artifact.objects.filter(kind=Kind.TOKENIZER).exists()


def test_a_text_that_is_gone_from_the_disk_is_named(text):
    absolute_path(text.path).unlink()
    making = claimed(text)
    do(making, threading.Event())
    making.refresh_from_db()
    assert making.reason == "poems.txt is not on the site's disk any more: choose other texts."


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"LAB_MEMORY_MB": 1}, "needed more than 1 MB"),
        ({"LAB_MINUTES": 0}, "took more than 0 minutes"),
    ],
)
def test_b10_one_over_a_limit_is_ended_and_says_what_to_change(large, settings, limit, words):
    for name, value in limit.items():
        setattr(settings, name, value)
    making = services.claim(timezone.now())
    do(making, threading.Event())
    making.refresh_from_db()
    assert making.state == State.FAILED and words in making.reason
    assert "choose fewer texts" in making.reason and not programs()


@pytest.mark.django_db(transaction=True)
def test_b10_one_that_is_killed_says_so_and_can_be_made_again(large):
    job = threading.Thread(target=alone, args=(tasks.work,))
    job.start()
    wait_for("its program", programs, DEADLINE_S)
    os.kill(programs()[0].pid, signal.SIGKILL)
    job.join(DEADLINE_S)
    killed = Making.objects.get()
    assert killed.state == State.FAILED
    assert "SIGKILL, as systems do when memory runs out" in killed.reason
    assert services.claim(timezone.now()) is None


@pytest.mark.django_db(transaction=True)
def test_b07_two_jobs_make_one_tokenizer_once_and_cancelling_ends_it(client, olga, large):
    client.force_login(olga)
    jobs = [threading.Thread(target=alone, args=(tasks.work,)) for _ in range(2)]
    for job in jobs:
        job.start()
    wait_for("progress", lambda: Making.objects.get().share > 0, DEADLINE_S)
    assert len(programs()) == 1
    told = client.get(f"{PAGE}making/{large.pk}/progress/").json()
    assert 0 < told["percent"] < 100 and "documents" in told["doing"]
    client.post(f"{PAGE}making/{large.pk}/cancel/")
    for job in jobs:
        job.join(DEADLINE_S)
    assert not programs()
    large.refresh_from_db()
    assert (large.state, large.reason, large.artifact) == (State.CANCELLED, "by an organiser", None)
    assert "Cancelled: by an organiser" in client.get(f"{PAGE}making/{large.pk}/").text
    client.post(f"{PAGE}making/{large.pk}/cancel/")
    assert Entry.objects.filter(action="tokenizer.cancelled").count() == 1


def test_one_whose_job_died_is_given_up(text):
    making = claimed(text)
    services.give_up_silent(timezone.now())
    assert Making.objects.get().state == State.RUNNING
    services.give_up_silent(timezone.now() + SILENT + timedelta(seconds=1))
    making.refresh_from_db()
    assert (making.state, "start it again" in making.reason) == (State.FAILED, True)


@pytest.fixture
def large(tmp_path, transactional_db) -> Making:
    """One that takes long enough to be interrupted."""
    lines = (f"{line} {number}" for number in range(20_000) for line in EVERYTHING)
    making = Making.objects.create(title="Large", plan=Wanted().model_dump(mode="json"))
    making.texts.set([add_text(tmp_path, "large.txt", "\n".join(lines))])
    return making
