"""Checkpoints made into models: by the trainer itself, once, and in words when that fails."""

from __future__ import annotations

import os
import signal
import threading
import zipfile
from datetime import timedelta
from io import BytesIO

import psutil
import pytest
import torch
import transformers
from django.utils import timezone

from tests.at_once import alone
from tests.waiting import wait_for
from tests.web.evaluations import add_checkpoint, make_small
from tests.web.test_model_card import credit
from trainer.engine.learner import Learner
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.storage import absolute_path
from webapp.collaborations.models import State as Stage
from webapp.core.jobs import SILENT, State
from webapp.registry import packing, services, tasks
from webapp.registry.models import Packing

PAGE = "/c/small/checkpoints/"
DEADLINE_S = 90.0


@pytest.fixture
def small(db, settings, tmp_path):
    settings.DATA_DIR, settings.ARTIFACTS_DIR = tmp_path / "data", tmp_path / "data" / "artifacts"
    return make_small(tmp_path)


def programs() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "export" in one.cmdline()]


@pytest.mark.heavy
def test_an_organiser_has_a_model_made_that_from_pretrained_loads(small, tmp_path, client, olga):
    checkpoint = add_checkpoint(small, tmp_path, 20)
    credit(small, "vera", 64, timezone.now(), is_named=True)
    act = f"/console/checkpoints/{checkpoint.pk}/pack/"
    client.force_login(olga)
    client.post(act)
    assert "Model: waiting" in client.get(PAGE).text
    packing.do(packing.claim(timezone.now()), threading.Event())
    made = Packing.objects.get()
    assert (made.state, made.reason) == (State.FINISHED, "")
    checkpoint.refresh_from_db()
    assert f"/artifacts/{checkpoint.model.sha256}/small-round-20.zip" in client.get(PAGE).text
    content = absolute_path(checkpoint.model.path).read_bytes()
    with zipfile.ZipFile(BytesIO(content)) as archive:
        archive.extractall(tmp_path / "out")
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out")
    learner = Learner(small.recipe, 0)
    theirs = dict(model.named_parameters())
    assert all(torch.equal(theirs[n], p) for n, p in learner.model.named_parameters())
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "out").pad_token == "<pad>"
    card = (tmp_path / "out/README.md").read_text()
    assert "vera" not in card and "are on [this card's page](" in card

    client.post(act)  # with what is known by now
    client.post(act)
    packing.do(packing.claim(timezone.now()), threading.Event())
    assert packing.claim(timezone.now()) is None
    services.retire(small, timezone.now())
    add_checkpoint(small, tmp_path, 40)
    small.keep_last = 1
    small.save()
    services.retire(small, timezone.now() + timedelta(hours=1))
    assert not Artifact.objects.filter(kind=Kind.MODEL).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.heavy
def test_b07_b10_two_jobs_make_one_model_and_one_that_is_killed_can_be_run_again(
    transactional_db, small, tmp_path, client, olga
):
    checkpoint = add_checkpoint(small, tmp_path, 20)
    Packing.objects.create(checkpoint=checkpoint, title="small, round 20")
    jobs = [threading.Thread(target=alone, args=(tasks.pack,), daemon=True) for _ in range(2)]
    for job in jobs:
        job.start()
    (program,) = wait_for("the program", programs, DEADLINE_S)
    os.kill(program.pid, signal.SIGKILL)
    for job in jobs:
        job.join(DEADLINE_S)
    killed = Packing.objects.get()
    assert killed.state == State.FAILED and "SIGKILL" in killed.reason
    client.force_login(olga)
    assert "SIGKILL" in client.get(PAGE).text
    client.post(f"/console/checkpoints/{checkpoint.pk}/pack/")  # in tests jobs are done at once
    assert Packing.objects.get().state == State.FINISHED


def test_the_last_one_of_a_finished_collaboration_is_made_without_being_asked(small, tmp_path):
    add_checkpoint(small, tmp_path, 20)
    last = add_checkpoint(small, tmp_path, 40)
    packing.enter_due(timezone.now())
    assert not Packing.objects.exists()
    small.state, small.finished_at = Stage.FINISHED, timezone.now()
    small.save()
    packing.enter_due(timezone.now() + timedelta(minutes=1))  # its coordinator may be writing
    assert not Packing.objects.exists()
    for _ in range(2):
        packing.enter_due(timezone.now() + timedelta(minutes=3))
    assert Packing.objects.get().checkpoint == last


def test_one_that_nobody_makes_any_more_or_whose_file_is_gone_is_told(small, tmp_path, olga):
    checkpoint = add_checkpoint(small, tmp_path, 20)
    packing.ask(checkpoint, by=olga)
    packing.claim(timezone.now())
    packing.give_up_silent(timezone.now() + SILENT + timedelta(seconds=1))
    assert "start it again" in Packing.objects.get().reason
    absolute_path(checkpoint.artifact.path).unlink()
    packing.ask(checkpoint, by=olga)
    packing.do(packing.claim(timezone.now()), threading.Event())
    found = Packing.objects.get()
    assert found.state == State.FAILED and "not among the site's files any more" in found.reason
