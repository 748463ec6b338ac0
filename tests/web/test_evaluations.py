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
from tests.factories import make_user
from tests.trainer.hub_stand_in import put, serving
from tests.waiting import wait_for
from tests.web.evaluations import add_checkpoint, add_task, claimed, make_small, programs
from webapp.artifacts.storage import absolute_path
from webapp.audit.models import Entry
from webapp.core.jobs import SILENT, State, fail
from webapp.evaluations import data, services, tasks
from webapp.evaluations.models import Baseline, Evaluation, Task
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


def test_an_organiser_names_a_data_set_of_a_hub_and_it_is_evaluated(
    small, tmp_path, client, olga, monkeypatch
):
    client.force_login(olga)
    fields = {"title": "WikiANN", "kind": "tags", "every": 20, "starts": 3, "epochs": 1}
    fields |= {"rate": 0.0003, "dataset": "org/wikiann bn", "columns": "tokens ner_tags"}
    for wrong, said in [
        ({"dataset": ""}, "Name its data, or a data set of a hub."),
        ({"columns": "tokens"}, "Two of them"),
        ({"columns": "--x --y"}, "is no column"),
        ({"dataset": "org/wikiann x y z a b c"}, "Four words at most"),
        ({"dataset": "../wikiann"}, "Write it like unimelb-nlp/wikiann bn train test"),
        ({"dataset": "--help"}, "Write it like"),
        ({"dataset": "org/wikiann bn train ../x"}, "Here: split: "),
        ({"kind": "perplexity"}, "Perplexity is of a text"),
    ]:
        assert said in client.post(PAGE, fields | wrong).text
    assert client.post(PAGE, fields).status_code == 302
    add_checkpoint(small, tmp_path, 20)
    with serving(monkeypatch) as hub:
        for split in ("train", "test"):
            put(
                hub,
                "org/wikiann",
                split,
                tokens=[["Asha", "sees"]] * 9,
                ner_tags=[["B-X", "O"]] * 9,
            )
        evaluation = claimed(Task.objects.get())
        do(evaluation, threading.Event())
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.reason) == (State.FINISHED, "")
    assert evaluation.result["data"]["sentences of the test"] == 9
    assert "org/wikiann bn" in client.get(PAGE).text


def test_perplexity_of_a_folder_is_refused_by_the_form(small, client, olga):
    client.force_login(olga)
    (data.folder() / "both").mkdir(parents=True)
    fields = {"title": "Both", "kind": "perplexity", "every": 0, "starts": 3, "epochs": 1}
    fields |= {"rate": 0.0003, "data": "file:both"}
    assert "this is a folder" in client.post(PAGE, fields).text and not Task.objects.exists()
    assert client.post(PAGE, fields | {"kind": "tags"}).status_code == 302


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
        services.enter_due()
        services.enter_due()
    rounds = every_40.evaluations.order_by("round").values_list("round", flat=True)
    assert list(rounds) == [20, 40, 100]
    assert not by_hand.evaluations.exists()


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


def test_an_organiser_enters_a_task_asks_for_it_and_enters_baselines(small, tmp_path, client, olga):
    client.force_login(olga)
    assert str(data.folder()) in client.get(PAGE).text  # where data are to be put
    data.folder().mkdir(parents=True)
    (data.folder() / "names.conll").write_text("a O\n")
    fields = {"title": "Names", "kind": "tags", "every": 0, "starts": 3, "epochs": 5}
    fields |= {"rate": 0.0003, "data": "file:names.conll"}
    refused = client.post(PAGE, fields | {"starts": 2})
    assert "Nothing was entered yet" in refused.text and not Task.objects.exists()
    assert "not one of the available" in client.post(PAGE, fields | {"data": "file:../x"}).text
    assert client.post(PAGE, fields).status_code == 302
    task = Task.objects.get()
    assert "choose another name" in client.post(PAGE, fields).text
    assert "There is no checkpoint yet." in client.get(PAGE).text
    client.post(f"{ACTS}/{task.pk}/ask/")
    assert not Evaluation.objects.exists()
    add_checkpoint(small, tmp_path, 20)
    for _ in range(2):
        client.post(f"{ACTS}/{task.pk}/ask/")
    evaluation = Evaluation.objects.get()
    assert "Waiting" in client.get(PAGE).text
    client.post(f"{ACTS}/{evaluation.pk}/cancel/")
    assert "by an organiser" in client.get(PAGE).text
    name = f"baseline-{task.pk}"
    given = {"baseline": task.pk, f"{name}-name": "XLM-R-large", f"{name}-score": "96.48"}
    assert "Enter a number" in client.post(PAGE, given | {f"{name}-score": "high"}).text
    given |= {f"{name}-std": "0.22", f"{name}-source": "its authors"}
    for _ in range(2):
        assert client.post(PAGE, given).status_code == 302
    page = client.get(PAGE).text
    assert "96.48 ± 0.22" in page and "its authors" in page
    client.post(f"{ACTS}/{Baseline.objects.get().pk}/forget/")
    client.post(f"{ACTS}/{task.pk}/drop/")
    assert not (Task.objects.exists() or Baseline.objects.exists() or Evaluation.objects.exists())
    assert Entry.objects.filter(action__startswith="evaluation.").count() == 7


@pytest.mark.parametrize("field", ["score", "std"])
def test_a_baseline_that_no_score_can_be_is_refused_in_words(small, client, olga, field):
    task = add_task(small)
    client.force_login(olga)
    name = f"baseline-{task.pk}"
    given = {"baseline": task.pk, f"{name}-name": "Best", f"{name}-score": "1e9"}
    for wrong in ("-0.1", "1.1e9", "1e400", "nan", "inf", "-inf"):
        page = client.post(PAGE, given | {f"{name}-{field}": wrong}).text
        assert "Enter a number from 0 to 1,000,000,000." in page, wrong
    assert not Baseline.objects.exists()
    assert client.post(PAGE, given).status_code == 302 and client.get(PAGE).status_code == 200


def test_a_baseline_of_a_task_that_is_gone_is_told_with_what_was_typed(small, client, olga):
    task = add_task(small)
    client.force_login(olga)
    name = f"baseline-{task.pk}"
    given = {"baseline": task.pk, f"{name}-name": "XLM-R", f"{name}-score": "96.48"}
    task.delete()
    page = client.post(PAGE, given).text
    assert "no such task any more" in page and "not entered: XLM-R, 96.48." in page
    assert "no such task any more" in client.post(PAGE, {"baseline": "x"}).text


def test_only_organisers_change_anything(small, client):
    task = add_task(small)
    client.force_login(make_user("victor"))
    assert "A new task" not in client.get(PAGE).text
    assert client.post(PAGE, {"title": "x"}).status_code == 403
    assert client.post(f"{ACTS}/{task.pk}/drop/").status_code == 403
    assert Task.objects.exists()


def test_visitors_of_a_collaboration_without_tasks_read_so(small, client):
    assert "have entered nothing" in client.get(PAGE).text
