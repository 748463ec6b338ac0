"""Evaluations on the site: by the timetable and by button, once each, and what a page tells."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests.at_once import alone
from tests.waiting import wait_for
from tests.web.evaluations import add_checkpoint, add_task, claimed, make_small, programs
from webapp.artifacts.storage import absolute_path
from webapp.core.jobs import SILENT, State, fail
from webapp.evaluations import data, services, tasks
from webapp.evaluations.models import Evaluation, Task
from webapp.evaluations.program import do, words_of

PAGE = "/c/small/evaluations/"
ACTS = "/console/evaluations"
DEADLINE_S = 90.0
RESULT = {
    "metric": "span_f1",
    "scores": {
        "word_accuracy": {"mean": 0.9, "std": 0.01, "n": 3, "values": [0.9] * 3},
        "span_f1": {"mean": 0.7512, "std": 0.02, "n": 3, "values": [0.75] * 3},
    },
    "baselines": [{"name": "all words O", "scores": {"span_f1": 0.0, "word_accuracy": 0.5}}],
    "data": {"words of the test": 1234},
}


@pytest.fixture
def small(db, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    return make_small(tmp_path)


@pytest.mark.heavy
def test_a_checkpoint_is_evaluated_by_the_trainer_itself(small, tmp_path, client):
    checkpoint = add_checkpoint(small, tmp_path, 20)
    evaluation = claimed(add_task(small, every=20))
    do(evaluation, threading.Event())
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.reason) == (State.FINISHED, "")
    found = evaluation.result
    assert found["model"]["sha256"] == checkpoint.artifact.sha256
    assert found["scores"]["span_f1"]["n"] == 3 and len(found["baselines"]) == 2
    page = client.get(PAGE).text
    assert "Round 20" in page and "n = 3" in page and "most frequent tag" in page


def test_perplexity_is_of_a_text_of_the_site(small, text, tmp_path):
    checkpoint = add_checkpoint(small, tmp_path, 20)
    task = add_task(small, every=20, kind="perplexity", text=text, file="")
    (tmp_path / "words").mkdir()
    act, kind, model, given, *_ = words_of(claimed(task), tmp_path / "words")
    assert (act, kind) == ("evaluate", "perplexity")
    assert Path(given).name == "poems.txt" and Path(given).samefile(absolute_path(text.path))
    assert Path(model).samefile(absolute_path(checkpoint.artifact.path))


def test_bad_data_are_told_to_organisers_with_their_line_and_no_path(small, tmp_path, client, olga):
    add_checkpoint(small, tmp_path, 20)
    task = add_task(small, every=20)
    (data.folder() / "names.conll").write_text("a O\nb\n")
    evaluation = claimed(task)
    do(evaluation, threading.Event())
    evaluation.refresh_from_db()
    assert "data/names.conll, line 2, is no word with its tag" in evaluation.reason
    assert evaluation.state == State.FAILED and str(tmp_path) not in evaluation.reason
    assert "names.conll, line 2" not in client.get(PAGE).text  # a line may be anybody's
    client.force_login(olga)
    assert "names.conll, line 2" in client.get(PAGE).text


@pytest.mark.parametrize("gone", ["data", "checkpoint"])
def test_what_is_gone_from_the_disk_is_named(small, tmp_path, gone):
    checkpoint = add_checkpoint(small, tmp_path, 20)
    evaluation = claimed(add_task(small, every=20))
    if gone == "data":
        (data.folder() / "names.conll").unlink()
    else:
        absolute_path(checkpoint.artifact.path).unlink()
    do(evaluation, threading.Event())
    evaluation.refresh_from_db()
    assert evaluation.state == State.FAILED and "any more" in evaluation.reason


@pytest.mark.django_db(transaction=True)
@pytest.mark.heavy
def test_b07_b10_two_jobs_do_one_evaluation_and_one_that_is_killed_can_be_run_again(
    transactional_db, small, tmp_path, client, olga
):
    checkpoint = add_checkpoint(small, tmp_path, 20)
    task = add_task(small, rows=300, epochs=100)
    known = {"round": 20, "sha256": checkpoint.artifact.sha256}
    Evaluation.objects.create(task=task, checkpoint=checkpoint, title="Names", **known)
    jobs = [threading.Thread(target=alone, args=(tasks.work,), daemon=True) for _ in range(2)]
    for job in jobs:
        job.start()
    wait_for("progress", lambda: Evaluation.objects.get().share > 0, DEADLINE_S)
    (program,) = programs()
    os.kill(program.pid, signal.SIGKILL)
    for job in jobs:
        job.join(DEADLINE_S)
    killed = Evaluation.objects.get()
    assert killed.state == State.FAILED and killed.result is None
    assert "SIGKILL, as systems do when memory runs out" in killed.reason
    client.force_login(olga)
    page = client.get(PAGE).text
    assert "SIGKILL" in page and "Run again" in page
    Task.objects.update(epochs=1)
    (data.folder() / "names.conll").write_text("a O\nb B-X\n\n" * 9)
    client.post(f"{ACTS}/{killed.pk}/again/")  # in tests jobs are done at once
    done = Evaluation.objects.get()
    assert (done.state, done.pk, done.reason) == (State.FINISHED, killed.pk, "")


def test_b07_a_result_that_comes_twice_counts_once(small, tmp_path):
    add_checkpoint(small, tmp_path, 20)
    evaluation = claimed(add_task(small, every=20))
    services.finish(evaluation, RESULT)
    services.finish(evaluation, RESULT | {"metric": "another"})
    fail(evaluation, "too late")
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.result["metric"]) == (State.FINISHED, "span_f1")
    assert services.claim(timezone.now()) is None
    with pytest.raises(IntegrityError), transaction.atomic():
        Evaluation.objects.create(
            task=evaluation.task, round=20, sha256=evaluation.sha256, title="twice"
        )


def test_each_task_takes_the_first_checkpoint_in_so_many_rounds(small, tmp_path):
    every_40, by_hand = add_task(small, every=40), add_task(small, title="By hand", every=0)
    for number in (20, 40, 60, 100):
        add_checkpoint(small, tmp_path, number)
        services.enter_due(timezone.now())
        services.enter_due(timezone.now())
    rounds = every_40.evaluations.order_by("round").values_list("round", flat=True)
    assert list(rounds) == [20, 40, 100]
    assert not by_hand.evaluations.exists()


def test_those_that_come_faster_than_the_timetable_looks_are_all_taken(small, tmp_path):
    task = add_task(small, every=20)
    for number in (10, 20, 30, 40, 50):
        add_checkpoint(small, tmp_path, number)
    services.enter_due(timezone.now())
    rounds = task.evaluations.order_by("round").values_list("round", flat=True)
    assert list(rounds) == [10, 20, 40]


def test_one_whose_job_died_is_given_up(small, tmp_path):
    add_checkpoint(small, tmp_path, 20)
    evaluation = claimed(add_task(small, every=20))
    services.give_up_silent(timezone.now() + SILENT + timedelta(seconds=1))
    evaluation.refresh_from_db()
    assert (evaluation.state, "start it again" in evaluation.reason) == (State.FAILED, True)


def test_a_result_outlives_its_checkpoint(small, tmp_path, client, olga):
    checkpoint = add_checkpoint(small, tmp_path, 20)
    services.finish(claimed(add_task(small, every=20)), RESULT)
    checkpoint.artifact.delete()
    page = client.get(PAGE).text
    assert "Round 20" in page and "75.12 ± 2.00" in page and "Span F1, %" in page
    client.force_login(olga)
    row = Evaluation.objects.get()
    client.post(f"{ACTS}/{row.pk}/again/")
    assert Evaluation.objects.get().state == State.FINISHED
