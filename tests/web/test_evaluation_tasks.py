"""Tasks of evaluations and baselines, as organisers enter them."""

from __future__ import annotations

import threading

import pytest

from tests.factories import make_user
from tests.trainer.hub_stand_in import put, serving
from tests.web.evaluations import add_checkpoint, add_task, claimed, make_small
from webapp.audit.models import Entry
from webapp.core.jobs import State
from webapp.evaluations import data
from webapp.evaluations.models import Baseline, Evaluation, Task
from webapp.evaluations.program import do

PAGE = "/c/small/evaluations/"
ACTS = "/console/evaluations"


@pytest.fixture
def small(db, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    return make_small(tmp_path)


@pytest.mark.heavy
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
    assert client.post(PAGE, fields | {"title": "Na\u202emes"}).status_code == 302
    task = Task.objects.get()
    assert task.title == "Names"
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
    kept = client.post(f"{ACTS}/{task.pk}/drop/", follow=True).text
    assert "tick “for good” to confirm" in kept and Task.objects.filter(pk=task.pk).exists()
    client.post(f"{ACTS}/{task.pk}/drop/", {"confirmation": "on"})
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
