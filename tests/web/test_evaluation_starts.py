"""Random starts of evaluations: each is kept once, whatever happens to the program that did it."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta
from functools import partial
from statistics import mean, stdev

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests.at_once import alone, at_once
from tests.waiting import wait_for
from tests.web.evaluations import add_checkpoint, add_task, claimed, make_small, programs
from webapp.celery import app
from webapp.core.jobs import State
from webapp.evaluations import services, tasks
from webapp.evaluations.models import Evaluation, Start, Task
from webapp.evaluations.selectors import scores_of

PAGE = "/c/small/evaluations/"
DEADLINE_S = 240.0
MANY = 20_000  # starts: not done before one is killed


@pytest.fixture
def small(db, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    return make_small(tmp_path)


def reported(*values, basis="a" * 64):
    """As the program reports starts that reached these."""
    starts = {str(number): {"span_f1": value} for number, value in enumerate(values)}
    return {"complete": False, "doing": "", "share": 0.5, "basis": basis, "starts": starts}


def entered(task, checkpoint):
    """Where commits are real, services would have it done at once."""
    known = {"round": checkpoint.round, "sha256": checkpoint.artifact.sha256}
    return Evaluation.objects.create(task=task, checkpoint=checkpoint, title="Names", **known)


def values_of(evaluation):
    return [start.scores["span_f1"] for start in evaluation.starts.all()]


@pytest.mark.django_db(transaction=True)
@pytest.mark.heavy
def test_b10_one_that_is_killed_goes_on_with_the_starts_that_it_lacks(
    transactional_db, small, tmp_path, client, olga
):
    entered(add_task(small, starts=MANY), add_checkpoint(small, tmp_path, 20))
    job = threading.Thread(target=alone, args=(tasks.work,), daemon=True)
    job.start()
    wait_for("a start", lambda: Start.objects.exists(), DEADLINE_S)
    (program,) = programs()
    os.kill(program.pid, signal.SIGKILL)
    job.join(DEADLINE_S)
    killed = Evaluation.objects.get()
    kept = list(killed.starts.values_list("pk", "number", "scores"))
    assert killed.state == State.FAILED and 1 <= len(kept) < MANY
    client.force_login(olga)
    page = client.get(PAGE).text
    assert f"{len(kept)} of {MANY:,} starts" in page and "Go on" in page and "SIGKILL" in page
    wanted = max(len(kept) + 1, 3)  # the least that tell a spread
    Task.objects.update(starts=wanted)
    client.post(f"/console/evaluations/{killed.pk}/again/")  # in tests jobs are done at once
    done = Evaluation.objects.get()
    assert (done.state, done.reason) == (State.FINISHED, "")
    assert list(done.starts.values_list("pk", "number", "scores"))[: len(kept)] == kept
    score = done.result["scores"]["span_f1"]
    assert score["values"] == values_of(done) and score["n"] == wanted
    assert score["mean"] == pytest.approx(mean(score["values"]))
    assert f"n = {wanted}" in client.get(PAGE).text


def test_a_part_of_the_starts_is_shown_as_a_part(small, tmp_path, client):
    add_checkpoint(small, tmp_path, 20)
    evaluation = claimed(add_task(small, every=20))
    assert services.note_progress(evaluation, reported(0.5, 0.7))
    page = client.get(PAGE).text
    assert "2 of 3 starts" in page and "60.00 ± 14.14" in page and "n = 2" in page
    found = scores_of(evaluation)["span_f1"]
    assert found == {"mean": mean([0.5, 0.7]), "std": stdev([0.5, 0.7]), "n": 2}


@pytest.mark.django_db(transaction=True)
def test_b07_a_start_that_is_told_often_and_by_two_at_once_counts_once(
    transactional_db, small, tmp_path
):
    evaluation = entered(add_task(small), add_checkpoint(small, tmp_path, 20))
    assert services.claim(timezone.now()) == evaluation
    at_once(*[partial(services.keep_starts, evaluation, reported(0.5, 0.7))] * 4)
    services.keep_starts(evaluation, reported(0.5, 0.7, 0.6))
    assert values_of(evaluation) == [0.5, 0.7, 0.6]
    with pytest.raises(IntegrityError), transaction.atomic():
        Start.objects.create(evaluation=evaluation, number=1, scores={})


def test_starts_of_other_data_are_not_mixed(small, tmp_path):
    add_checkpoint(small, tmp_path, 20)
    evaluation = claimed(add_task(small, every=20))
    services.keep_starts(evaluation, reported(0.5, 0.7))
    services.keep_starts(evaluation, reported(0.9, basis="b" * 64))
    assert values_of(evaluation) == [0.9]


def test_nothing_is_kept_of_one_that_was_cancelled(small, tmp_path, olga):
    add_checkpoint(small, tmp_path, 20)
    evaluation = claimed(add_task(small, every=20))
    services.cancel(evaluation, by=olga)
    services.keep_starts(evaluation, reported(0.5))
    assert not services.note_progress(evaluation, reported(0.5)) and not Start.objects.exists()


@pytest.mark.heavy
def test_the_timetable_measures_a_text_every_so_many_rounds_by_itself(
    small, text, tmp_path, client
):
    entry = app.conf.beat_schedule["tend evaluations"]
    assert entry["task"] == tasks.tend_evaluations.name and entry["schedule"] <= 60
    add_task(small, title="Held-out", every=20, kind="perplexity", text=text, file="")
    for number in (20, 40, 60, 80):
        add_checkpoint(small, tmp_path, number)
    long_ago = timezone.now() - timedelta(hours=1)  # the site's jobs were down since
    small.checkpoints.update(created_at=long_ago)
    for _ in range(2):
        tasks.tend_evaluations()
    add_checkpoint(small, tmp_path, 100)
    tasks.tend_evaluations()
    done = Evaluation.objects.order_by("round")
    assert [one.round for one in done] == [80, 100]  # the others are not made up for
    assert {one.state for one in done} == {State.FINISHED}, [one.reason for one in done]
    assert "Pseudo-perplexity" in client.get(PAGE).text
