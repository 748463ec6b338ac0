"""Which checkpoints stay, and that files go when nothing names them, and never before."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.at_once import at_once
from tests.factories import make_collaboration
from tests.web.registered import add, kept_rounds, let_age, on_disk
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.services import delete_unnamed, register_file, retire
from webapp.artifacts.storage import absolute_path, keep
from webapp.core.errors import UserError
from webapp.core.jobs import State
from webapp.evaluations.models import Evaluation, Task
from webapp.registry import services
from webapp.registry.retention import LOADING, why_kept
from webapp.registry.tasks import tend_checkpoints


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


def evaluated(checkpoint, state):
    task, _ = Task.objects.get_or_create(collaboration=checkpoint.collaboration, title="Names")
    known = {"round": checkpoint.round, "sha256": checkpoint.artifact.sha256, "title": "Names"}
    return Evaluation.objects.create(task=task, checkpoint=checkpoint, state=state, **known)


def test_the_last_ones_the_best_the_regular_and_the_pinned_stay_and_the_rest_goes(
    collaboration, olga, tmp_path, monkeypatch
):
    losses = {10: 4.0, 20: 3.0, 30: 2.5, 40: 2.9, 50: None, 60: 3.3, 70: 3.2, 80: 3.1}
    made = {n: add(collaboration, tmp_path, n, held_out=x) for n, x in losses.items()}
    services.pin(made[10], by=olga)
    collaboration.keep_last, collaboration.keep_every = 2, 25
    collaboration.save()
    words = why_kept(collaboration, timezone.now())
    assert words == {
        made[80].pk: "newest, one in every 25 rounds",
        made[70].pk: "one of the last",
        made[30].pk: "best held-out loss, one in every 25 rounds",
        made[50].pk: "one in every 25 rounds",
        made[10].pk: "pinned, one in every 25 rounds",
    }
    tend_checkpoints()
    assert kept_rounds(collaboration) == [80, 70, 50, 30, 10]
    let_age(monkeypatch)
    tend_checkpoints()
    assert [n for n, one in made.items() if on_disk(one)] == [10, 30, 50, 70, 80]
    gone = collaboration.checkpoints.get(round=20)
    assert (gone.sha256, gone.size_bytes) == (made[20].artifact.sha256, 7)
    assert gone.retired_at is not None and not Artifact.objects.filter(sha256=gone.sha256).exists()


def test_what_a_device_may_have_been_told_to_load_stays_for_a_while(collaboration, tmp_path):
    collaboration.keep_last = 1
    collaboration.save()
    for number, minutes in ((10, 90), (20, 40), (30, 10), (40, 1)):
        add(collaboration, tmp_path, number, ago=timedelta(minutes=minutes))
    tend_checkpoints()
    # 20 was the newest until ten minutes ago, 10 until forty minutes ago.
    assert kept_rounds(collaboration) == [40, 30, 20]
    services.retire(collaboration, timezone.now() + LOADING)
    assert kept_rounds(collaboration) == [40]


def test_what_an_evaluation_needs_or_has_measured_stays(collaboration, tmp_path):
    collaboration.keep_last = 1
    collaboration.save()
    states = (State.WAITING, State.RUNNING, State.FINISHED, State.FAILED, None)
    for number, state in enumerate(states, start=1):
        checkpoint = add(collaboration, tmp_path, number)
        if state:
            evaluated(checkpoint, state)
    tend_checkpoints()
    assert kept_rounds(collaboration) == [5, 3, 2, 1]
    collaboration.keep_evaluated = False
    collaboration.save()
    tend_checkpoints()
    assert kept_rounds(collaboration) == [5, 2, 1]


@pytest.mark.django_db(transaction=True)
def test_b07_the_job_delivered_twice_at_once_retires_each_once(transactional_db, tmp_path):
    collaboration = make_collaboration("demo", state="running")
    for number in range(1, 20):
        add(collaboration, tmp_path, number)
    done = at_once(*[lambda: services.retire(collaboration, timezone.now())] * 4)
    assert sorted(done) == [0, 0, 0, 14]
    assert kept_rounds(collaboration) == [19, 18, 17, 16, 15]


def test_a_file_that_two_collaborations_or_a_text_name_stays(collaboration, tmp_path, monkeypatch):
    other = make_collaboration("other")
    shared = add(collaboration, tmp_path, 1, content=b"the same")
    same = add(other, tmp_path, 1, content=b"the same")
    text = add(collaboration, tmp_path, 2, content=b"a text, too")
    (tmp_path / "text.txt").write_bytes(b"a text, too")
    assert register_file(tmp_path / "text.txt", Kind.TEXT) == text.artifact
    let_age(monkeypatch)
    for one in (shared, text):
        retire(collaboration.checkpoints.get(pk=one.pk), timezone.now())
    delete_unnamed()
    assert on_disk(shared) and on_disk(text)
    retire(other.checkpoints.get(pk=same.pk), timezone.now())
    assert delete_unnamed() == 1 and not on_disk(shared)
    assert on_disk(text) and Artifact.objects.get().kind == Kind.TEXT


def test_leftovers_of_dead_processes_go_and_fresh_files_do_not(
    collaboration, tmp_path, monkeypatch, settings
):
    kept = add(collaboration, tmp_path, 1)
    draft = settings.ARTIFACTS_DIR / "ab" / ".0123"
    draft.parent.mkdir(exist_ok=True)
    draft.write_text("half")
    os.utime(draft, (1, 1))  # the age of its content is no matter
    assert delete_unnamed() == 0
    let_age(monkeypatch)
    assert delete_unnamed() == 1 and not draft.exists() and on_disk(kept)


def test_a_file_that_is_taken_up_again_is_fresh_before_it_is_named(collaboration, tmp_path):
    file = add(collaboration, tmp_path, 1).artifact
    retire(collaboration.checkpoints.get(), timezone.now())
    place = absolute_path(file.path)
    before = place.stat().st_ctime_ns
    source = tmp_path / "again"
    source.write_bytes(place.read_bytes())
    keep(source, file.sha256)
    assert place.stat().st_ctime_ns > before
    assert delete_unnamed() == 0 and place.exists()  # its row is not there yet


def test_a_pin_comes_too_late_for_what_is_gone(collaboration, tmp_path, olga, alice):
    for number in range(1, 8):
        made = add(collaboration, tmp_path, number)
    with pytest.raises(UserError, match="Only organisers"):
        services.pin(made, by=alice)
    tend_checkpoints()
    with pytest.raises(UserError, match="round 1 was deleted"):
        services.pin(collaboration.checkpoints.last(), by=olga)
