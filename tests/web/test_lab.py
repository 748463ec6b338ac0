"""The lab: organisers start experiments, a program does them within limits, results are kept."""

from __future__ import annotations

import threading
from datetime import timedelta

import psutil
import pytest
from django.utils import timezone

from tests.at_once import alone
from tests.waiting import wait_for
from trainer.experiment import Experiment
from trainer.recipe import Choice
from webapp.audit.models import Entry
from webapp.core.jobs import SILENT
from webapp.lab import services, tasks
from webapp.lab.models import State, Trial
from webapp.lab.program import do

LAB = "/console/lab/"
TINY = {"plan__volunteers": "2", "plan__rounds": "2", "plan__seeds": "1"}
DEADLINE_S = 60.0


def make_trial(**changes) -> Trial:
    values = {"volunteers": 2, "rounds": 2, "seeds": 1, "baselines": False} | changes
    experiment = Experiment(strategies=(Choice(name="fedavg"),), **values)
    return Trial.objects.create(title="One", plan=experiment.model_dump(mode="json"))


def claimed(**changes) -> Trial:
    make_trial(**changes)
    trial = services.claim(timezone.now())
    assert trial is not None
    return trial


def filled(client, **changes) -> dict:
    """What the form is posted with; a tick that is not set is not posted."""
    fields = client.get(LAB).context["form"].fields
    usual = {name: field.initial for name, field in fields.items() if field.initial}
    return usual | {"strategies": ["fedavg", "dedloc"]} | TINY | changes


def test_only_organisers_may_look_and_act(client, alice):
    trial = make_trial()
    paths = ["", *(f"{trial.pk}/{end}" for end in ("", "progress/", "experiment.json"))]
    for path in paths:
        assert "/accounts/login/" in client.get(f"{LAB}{path}").url
    client.force_login(alice)
    for path in paths:
        assert client.get(f"{LAB}{path}").status_code == 403
    for act in ("", f"{trial.pk}/cancel/", f"{trial.pk}/delete/"):
        assert client.post(f"{LAB}{act}").status_code == 403
    assert Trial.objects.count() == 1


@pytest.mark.heavy
def test_an_experiment_is_started_done_shown_and_can_be_done_again(
    client, olga, django_capture_on_commit_callbacks
):
    client.force_login(olga)
    with django_capture_on_commit_callbacks(execute=True):
        made = client.post(LAB, filled(client, title="My data", plan__split="label"))
    trial = Trial.objects.get()
    assert made.url == f"{LAB}{trial.pk}/" and trial.state == State.FINISHED, trial.reason
    assert Entry.objects.filter(action="experiment.started", actor=olga).count() == 1
    page = client.get(made.url).text
    for words in ("My data", ">FedAvg</th>", "All texts on one machine", "may be luck"):
        assert words in page
    assert client.get(f"{made.url}progress/").json()["percent"] == 100
    plan = client.get(f"{made.url}experiment.json").json()
    assert Experiment.model_validate(plan).split == "label"
    result = client.get(f"{made.url}result.json").json()
    assert result["complete"] and result["experiment"] == plan
    again = client.get(f"{LAB}?like={trial.pk}").context["form"]
    assert again["plan__split"].value() == "label" and again["plan__rounds"].value() == 2
    assert again["strategies"].value() == ["fedavg", "dedloc"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"plan__volunteers": "1"}, "greater than or equal to 2"),
        ({"strategies": []}, "This field is required"),
        ({"plan__alpha": "0"}, "greater than 0"),
        ({"strategies": ["nothing"]}, "not one of the available choices"),
    ],
)
def test_a_form_that_makes_no_sense_starts_nothing_and_says_why(client, olga, changes, words):
    client.force_login(olga)
    page = client.post(LAB, filled(client, **changes)).text
    assert words in page and "Nothing was started yet" in page and not Trial.objects.exists()


def test_one_runs_at_a_time_and_the_others_wait_in_their_order(db):
    first, second = make_trial(), make_trial()
    assert services.claim(timezone.now()) == first
    assert services.claim(timezone.now()) is None
    services.finish(first, None, "")
    assert services.claim(timezone.now()) == second


def test_too_many_that_wait_are_refused(client, olga):
    client.force_login(olga)
    for _ in range(services.MOST_WAITING):
        make_trial()
    assert "are waiting already" in client.post(LAB, filled(client)).text


def test_one_that_would_take_too_long_is_refused_before_it_starts(client, olga):
    client.force_login(olga)
    huge = {"plan__volunteers": "40", "plan__rounds": "300", "plan__seeds": "5"}
    page = client.post(LAB, filled(client, **huge)).text
    assert "about 260 minutes, and an experiment is ended after 30" in page
    assert not Trial.objects.exists()


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"LAB_MEMORY_MB": 1}, "needed more than 1 MB"),
        ({"LAB_MINUTES": 0}, "took more than 0 minutes"),
    ],
)
def test_one_over_a_limit_is_ended_and_says_what_to_change(db, settings, limit, words):
    for name, value in limit.items():
        setattr(settings, name, value)
    trial = claimed(rounds=300)
    do(trial, threading.Event())
    trial.refresh_from_db()
    assert trial.state == State.FAILED
    assert words in trial.reason and "choose fewer volunteers" in trial.reason
    assert not _programs()


def test_when_the_jobs_are_stopped_it_is_ended_and_says_so(db):
    stopping = threading.Event()
    stopping.set()
    trial = claimed(rounds=300)
    do(trial, stopping)
    trial.refresh_from_db()
    assert (trial.state, "start it again" in trial.reason) == (State.FAILED, True)
    assert not _programs()


def test_a_program_that_cannot_do_it_is_quoted(db):
    trial = claimed()
    trial.plan["strategies"][0]["name"] = "nothing"
    do(trial, threading.Event())
    trial.refresh_from_db()
    assert trial.state == State.FAILED and "'nothing' is not in strategies" in trial.reason


@pytest.mark.django_db(transaction=True)
@pytest.mark.heavy
def test_cancelling_ends_the_program_and_keeps_what_it_had(client, olga):
    client.force_login(olga)
    trial = make_trial(volunteers=2, rounds=300, seeds=5)
    job = threading.Thread(target=alone, args=(tasks.work,))
    job.start()
    wait_for("a round", lambda: Trial.objects.get().rounds_done > 0, DEADLINE_S)
    assert 0 <= client.get(f"{LAB}{trial.pk}/progress/").json()["percent"] < 100
    client.post(f"{LAB}{trial.pk}/cancel/")
    job.join(DEADLINE_S)
    assert not job.is_alive() and not _programs()
    trial.refresh_from_db()
    assert (trial.state, trial.reason) == (State.CANCELLED, "by an organiser")
    assert trial.result is not None and not trial.result["complete"]
    page = client.get(f"{LAB}{trial.pk}/").text
    assert "Cancelled: by an organiser" in page
    client.post(f"{LAB}{trial.pk}/delete/", {"confirmation": "on"})
    assert not Trial.objects.exists()
    acts = set(Entry.objects.values_list("action", flat=True))
    assert acts == {"experiment.cancelled", "experiment.deleted"}


def test_one_whose_job_died_is_given_up(db):
    trial = claimed()
    later = timezone.now() + SILENT + timedelta(seconds=1)
    services.give_up_silent(timezone.now())
    assert Trial.objects.get().state == State.RUNNING
    services.give_up_silent(later)
    trial.refresh_from_db()
    assert (trial.state, "start it again" in trial.reason) == (State.FAILED, True)


def _programs() -> list[psutil.Process]:
    """Experiments that this process still has running."""
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "simulate" in " ".join(one.cmdline())]
