"""Checkpoints measured by devices that are too small to train: who gets which part, and what of it
counts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.at_once import at_once
from tests.factories import make_collaboration, make_device, make_file, make_user
from trainer.engine import checkpoint as files
from trainer.grant import Evaluated, EvaluationRequest
from trainer.recipe import Text
from webapp.artifacts.models import Checkpoint
from webapp.artifacts.services import register_file
from webapp.core.errors import UserError
from webapp.credit.models import HourlyCredit
from webapp.credit.selectors import leaderboard
from webapp.held_out import services
from webapp.held_out.selectors import newest_evaluation

START = timezone.now()
HELD_OUT = Text(kind="site", file=make_file(b"held out\n", "held-out.txt"))


@pytest.fixture(autouse=True)
def artifacts_folder(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


@pytest.fixture
def measured(db):
    return make_collaboration("measured", held_out=HELD_OUT)


def write(collaboration, number, folder):
    path = folder / files.filename(number)
    path.write_bytes(f"checkpoint {number}".encode())
    artifact = register_file(path, "checkpoint", title=collaboration.slug)
    return Checkpoint.objects.create(collaboration=collaboration, artifact=artifact, round=number)


class Small:
    """A device that asks for parts."""

    def __init__(self, collaboration, name="") -> None:
        self.device, _ = make_device(make_user(name))
        self.collaboration = collaboration
        self.task, self.reason = None, ""

    def ask(self, after=timedelta(), done=None):
        request = EvaluationRequest(
            recipe_sha256=self.collaboration.revision.sha256,
            done=None if done is None else self.result(**done),
        )
        answer = services.next_part(self.device, self.collaboration, request, now=START + after)
        self.task, self.reason = answer.task, answer.reason
        return self.task

    def result(self, loss_sum=20.0, tokens=10):
        task = self.task
        return Evaluated(
            checkpoint=task.checkpoint.sha256, part=task.part, loss_sum=loss_sum, tokens=tokens
        )

    @property
    def credit(self):
        return sum(HourlyCredit.objects.filter(device=self.device).values_list("evaluated", flat=1))


def test_each_part_is_one_devices_and_what_it_measured_counts_once(measured, tmp_path):
    write(measured, 20, tmp_path)
    one, other = Small(measured), Small(measured)
    assert (one.ask().part, other.ask().part) == (0, 1)
    assert one.ask().part == 0  # asked again, it still has that
    first = one.task
    assert one.ask(done={"loss_sum": 30.0, "tokens": 10}).part == 2
    one.task = first
    one.ask(done={"loss_sum": 99.0, "tokens": 10})  # the answer was lost, so it told it again
    found = newest_evaluation(measured)
    assert (found.round, found.loss, found.num_done, found.num_devices) == (20, 3.0, 1, 1)
    assert one.credit == 10 and other.credit == 0
    other.ask(done={"loss_sum": 60.0, "tokens": 30})
    found = newest_evaluation(measured)
    assert (found.loss, found.num_done, found.num_devices) == (90.0 / 40, 2, 2)


def test_a_device_that_goes_away_leaves_its_part_to_another_and_is_too_late_then(
    measured, tmp_path
):
    write(measured, 20, tmp_path)
    gone, other = Small(measured), Small(measured)
    gone.ask()
    later = services.LEASE + timedelta(seconds=1)
    assert other.ask(after=later).part == gone.task.part == 0
    gone.ask(after=later, done={})
    assert newest_evaluation(measured) is None and gone.credit == 0
    other.ask(after=later, done={})
    assert newest_evaluation(measured).num_done == 1 and other.credit == 10


def test_all_parts_are_measured_and_then_those_of_the_next_checkpoint(measured, tmp_path):
    one = Small(measured)
    assert one.ask() is None and one.reason == "there is no checkpoint to measure yet"
    write(measured, 20, tmp_path)
    one.ask()
    for _ in range(services.NUM_PARTS):
        one.ask(done={"tokens": 0, "loss_sum": 0.0} if one.task.part == 3 else {})
    assert one.task is None and "all parts of round 20's model are measured" in one.reason
    found = newest_evaluation(measured)
    assert (found.num_done, found.num_parts, found.loss) == (16, 16, 2.0)
    write(measured, 40, tmp_path)
    assert one.ask().checkpoint.round == 40
    assert newest_evaluation(measured).round == 20  # until one of its parts is measured
    one.ask(done={"loss_sum": 15.0})
    assert newest_evaluation(measured).round == 40


def test_claims_that_cannot_be_and_strangers_count_nothing(measured, tmp_path):
    write(measured, 20, tmp_path)
    one = Small(measured)
    one.ask()
    one.ask(done={"tokens": 10**9})
    assert newest_evaluation(measured) is None and one.credit == 0
    for other in (make_collaboration("without"), make_collaboration("own", held_out=HELD_OUT)):
        with pytest.raises(UserError, match="no such held-out text"):
            request = EvaluationRequest(recipe_sha256=measured.revision.sha256)
            services.next_part(one.device, other, request, now=START)
    with pytest.raises(ValueError, match="finite"):
        one.result(loss_sum=float("nan"))


@pytest.mark.django_db(transaction=True)
def test_devices_that_ask_at_the_same_time_get_different_parts(tmp_path):
    measured = make_collaboration("measured", held_out=HELD_OUT)
    write(measured, 20, tmp_path)
    small = [Small(measured) for _ in range(6)]
    found = at_once(*[lambda one=one: one.ask().part for one in small])
    assert sorted(found) == list(range(6))


def test_pages_and_the_leaderboard_tell_of_it(client, measured, tmp_path):
    write(measured, 20, tmp_path)
    one = Small(measured, "mia")
    one.ask()
    one.ask(done={"loss_sum": 34.5})
    page = client.get("/c/measured/").text
    assert "Held-out loss of round 20 as measured by 1 device" in page
    assert "3.45, from 1 of 16 parts of the held-out text" in page
    (row,) = leaderboard("24h").rows
    assert (row.name, row.evaluated, row.samples) == ("mia", 10, 0)
    assert "mia" in client.get("/leaderboard/").text
    client.force_login(one.device.owner)
    assert "measured models with 10 tokens" in client.get("/me/").text
    shown = client.get("/api/v1/leaderboard").json()
    assert shown["rows"][0]["evaluated"] == shown["total"]["evaluated"] == 10
