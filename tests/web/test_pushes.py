"""Models pushed to a hub by an organiser: once, again where that failed, and no token is seen."""

from __future__ import annotations

import logging
import os
import signal
import threading
import zipfile
from datetime import timedelta

import psutil
import pytest
from django.apps import apps
from django.utils import timezone

from tests.at_once import alone
from tests.factories import make_user
from tests.hub import TOKEN, hub
from tests.waiting import wait_for
from tests.web.registered import add
from webapp.artifacts.models import Kind
from webapp.artifacts.services import register_file
from webapp.audit.models import Entry
from webapp.core.jobs import SILENT, State
from webapp.registry import pushing, services, tasks
from webapp.registry.models import Push
from webapp.registry.packing import _pack

DEADLINE_S = 90.0


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


@pytest.fixture
def server(settings):
    with hub() as found:
        settings.HUB_URL, settings.HUB_TOKEN = found.url, TOKEN
        yield found


@pytest.fixture
def checkpoint(collaboration, tmp_path):
    """With a model, which nothing looks into."""
    made = add(collaboration, tmp_path, 20, held_out=3.25)
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"weights" * 1000)
    (model / "config.json").write_text("{}")
    (model / "README.md").write_text("# As it was when the model was made\n")
    _pack(model, tmp_path / "demo-round-20.zip")
    made.model = register_file(tmp_path / "demo-round-20.zip", Kind.MODEL)
    made.save()
    return made


def asked(checkpoint, olga, repository="owner/tiny", **more):
    return pushing.ask(checkpoint, repository, **{"is_private": True, "by": olga} | more)


def done(push):
    claimed = pushing.claim(timezone.now())
    assert claimed == push
    pushing.do(claimed, threading.Event())
    push.refresh_from_db()
    return push


def programs() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "push" in one.cmdline()]


def everything_kept() -> str:
    """All values of all rows."""
    rows = (model._default_manager.all().values_list() for model in apps.get_models())
    return repr([list(found) for found in rows])


def test_an_organiser_pushes_a_model_with_its_card_and_the_token_is_seen_nowhere(
    client, checkpoint, olga, server, caplog, capfd
):
    caplog.set_level(logging.DEBUG)
    page = f"/c/demo/checkpoints/{checkpoint.pk}/"
    client.force_login(olga)
    assert "Push it" in client.get(page).text
    given = {"repository": "owner/tiny", "is_private": "on"}
    client.post(f"/console/checkpoints/{checkpoint.pk}/push/", given)
    push = done(Push.objects.get())
    assert (push.state, push.reason) == (State.FINISHED, "")
    assert push.address == f"{server.url}/owner/tiny"
    files = server.repositories["owner/tiny"]
    assert sorted(files) == ["README.md", "config.json", "model.safetensors"]
    assert files["model.safetensors"] == b"weights" * 1000
    assert "of round 20" in files["README.md"].decode()
    assert server.private == {"owner/tiny": True} and server.commits == 1
    shown = client.get(page).text
    assert push.address in shown and "Finished" in shown
    server.fault["commit"] = 403  # its answer has the token
    again = done(asked(checkpoint, olga, "owner/other"))
    assert again.state == State.FAILED and "may not write there" in again.reason
    said = capfd.readouterr()
    for place in (client.get(page).text, everything_kept(), caplog.text, said.out, said.err):
        assert TOKEN not in place
    assert Entry.objects.filter(action="checkpoints.pushed").count() == 2


@pytest.mark.parametrize(
    ("step", "status", "words"),
    [("create", 401, "does not know the token"), ("create", 403, "may not write there")],
)
def test_a_refusal_is_told_and_it_can_be_pushed_again(
    client, checkpoint, olga, server, step, status, words
):
    server.fault[step] = status
    push = done(asked(checkpoint, olga))
    assert push.state == State.FAILED and words in push.reason
    client.force_login(olga)
    page = client.get(f"/c/demo/checkpoints/{checkpoint.pk}/").text
    assert words in page and "Push again" in page
    server.fault.clear()
    assert done(asked(checkpoint, olga)).state == State.FINISHED


@pytest.mark.django_db(transaction=True)
def test_b07_b10_two_jobs_push_once_and_one_that_is_killed_can_be_pushed_again(
    transactional_db, checkpoint, olga, server
):
    server.waits.clear()
    Push.objects.create(checkpoint=checkpoint, repository="owner/tiny", title="demo, round 20")
    jobs = [threading.Thread(target=alone, args=(tasks.push,), daemon=True) for _ in range(2)]
    for job in jobs:
        job.start()
    wait_for("the upload", lambda: "upload" in server.steps, DEADLINE_S)
    (program,) = programs()
    assert TOKEN not in " ".join(program.cmdline())
    os.kill(program.pid, signal.SIGKILL)
    for job in jobs:
        job.join(DEADLINE_S)
    killed = Push.objects.get()
    assert killed.state == State.FAILED and "SIGKILL" in killed.reason and not server.commits
    server.waits.set()
    asked(checkpoint, olga)  # in tests jobs are done at once
    assert Push.objects.filter(state=State.FINISHED).count() == 1 and server.commits == 1


def test_what_cannot_be_pushed_is_told_before_anything_is_sent(
    client, checkpoint, collaboration, olga, alice, server, settings, tmp_path
):
    client.force_login(olga)
    place = f"/console/checkpoints/{checkpoint.pk}/push/"
    for wrong in ("", "tiny", "owner/ti ny", "a/b/c", "../x", "owner/tiny?x"):
        page = client.post(place, {"repository": wrong}, follow=True).text
        assert "is no repository of a hub" in page
    asked(checkpoint, olga)
    page = client.post(place, {"repository": "owner/tiny"}, follow=True).text
    assert "is being pushed to owner/tiny already" in page
    client.post(f"/console/pushes/{Push.objects.get().pk}/cancel/")
    assert Push.objects.get().state == State.CANCELLED and pushing.claim(timezone.now()) is None
    other = add(collaboration, tmp_path, 40)
    page = client.post(f"/console/checkpoints/{other.pk}/push/", {"repository": "o/n"}, follow=True)
    assert "Make the model first" in page.text
    settings.HUB_TOKEN = ""
    page = client.post(place, {"repository": "owner/tiny"}, follow=True).text
    assert "sets HUB_TOKEN" in page and "Push it</button>" not in page
    client.force_login(alice)
    assert client.post(place, {"repository": "owner/tiny"}).status_code == 403
    assert "HUB_TOKEN" not in client.get(f"/c/demo/checkpoints/{checkpoint.pk}/").text
    assert server.steps == []


def test_a_hub_that_is_down_or_a_job_that_died_is_told(checkpoint, olga, settings):
    with hub() as found:
        settings.HUB_URL, settings.HUB_TOKEN = found.url, TOKEN
    push = done(asked(checkpoint, olga))
    assert push.state == State.FAILED and "cannot be reached" in push.reason
    push = asked(checkpoint, olga)
    pushing.claim(timezone.now())
    pushing.give_up_silent(timezone.now() + SILENT + timedelta(seconds=1))
    push.refresh_from_db()
    assert push.state == State.FAILED and "start it again" in push.reason


def test_a_checkpoint_stays_while_its_model_is_to_be_pushed(
    checkpoint, collaboration, olga, server, tmp_path
):
    collaboration.keep_last = 1
    collaboration.save()
    add(collaboration, tmp_path, 40, held_out=2.0)
    push = asked(checkpoint, olga)
    assert services.retire(collaboration, timezone.now()) == 0
    pushing.cancel(push, by=make_user("otto", is_staff=True))
    assert services.retire(collaboration, timezone.now()) == 1
    with zipfile.ZipFile(tmp_path / "demo-round-20.zip") as archive:
        assert archive.testzip() is None
