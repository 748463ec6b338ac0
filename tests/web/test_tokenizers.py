"""Tokenizers on the site: a job makes one from its texts, a page shows what it does with a text."""

from __future__ import annotations

import os
import signal
import threading
import time
from datetime import timedelta

import psutil
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from tokenizers import Tokenizer

from tests.trainer.bengali import BENGALI, EVERYTHING
from trainer.tokenizing import Wanted
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.services import register_file
from webapp.artifacts.storage import absolute_path
from webapp.audit.models import Entry
from webapp.core.jobs import SILENT, State
from webapp.tokenizers import services, tasks
from webapp.tokenizers.models import Making
from webapp.tokenizers.program import do

PAGE = "/console/tokenizers/"
DEADLINE_S = 60.0


@pytest.fixture
def text(db, tmp_path) -> Artifact:
    return add(tmp_path, "poems.txt", "\n".join(EVERYTHING * 5))


def add(folder, name: str, content: str | bytes) -> Artifact:
    content = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(content)
    return register_file(folder / name, Kind.TEXT, title=name)


def claimed(*texts: Artifact, **wanted) -> Making:
    making = Making.objects.create(
        title="Ours", plan=Wanted(**({"size": 400} | wanted)).model_dump(mode="json")
    )
    making.texts.set(texts)
    found = services.claim(timezone.now())
    assert found is not None
    return found


def filled(text: Artifact, **changes) -> dict:
    steps = ["clean", "nfkc", "spaces", "nukta", "vowels", "danda", "accents"]
    usual = {"title": "Bengali", "size": "400", "purpose": "albert", "texts": [text.pk]}
    return usual | {"steps": steps} | changes


def test_only_organisers_may_look_and_act(client, alice, text):
    making = claimed(text)
    paths = ["", "1/", f"making/{making.pk}/", f"making/{making.pk}/progress/"]
    for path in paths:
        assert "/accounts/login/" in client.get(f"{PAGE}{path}").url
    client.force_login(alice)
    for path in paths:
        assert client.get(f"{PAGE}{path}").status_code == 403
    for act in ("", "1/", f"making/{making.pk}/cancel/"):
        assert client.post(f"{PAGE}{act}").status_code == 403
    assert Making.objects.count() == 1


def test_a_tokenizer_is_made_tried_and_offered_for_collaborations(
    client, olga, text, django_capture_on_commit_callbacks
):
    client.force_login(olga)
    with django_capture_on_commit_callbacks(execute=True):
        made = client.post(PAGE, filled(text))
    making = Making.objects.get()
    assert made.url == f"{PAGE}making/{making.pk}/"
    assert making.state == State.FINISHED, making.reason
    tokenizer = making.artifact
    assert (tokenizer.kind, tokenizer.title) == (Kind.TOKENIZER, "Bengali")
    known = Tokenizer.from_file(str(absolute_path(tokenizer.path)))
    assert known.get_vocab_size() == tokenizer.vocab_size == making.made["size"]
    page = client.get(made.url).text
    assert "75" in page and "a colon after a Bengali letter is a visarga" in page
    offered = client.get("/console/create/").context["form"].fields["tokenizer"].choices
    assert tokenizer.sha256 in [value for value, _ in offered]
    assert "Bengali" in client.get(PAGE).text
    shown = client.post(f"{PAGE}{tokenizer.pk}/", {"text": f"{BENGALI[0]}  ☃ দু:খ"})
    assert shown.context["shown"]["normal"] == f"{BENGALI[0]} ☃ দু:খ"
    for words in ("unknown", "[CLS]", "How it was made", "Characters per token"):
        assert words in shown.text
    assert Entry.objects.filter(action="tokenizer.started", actor=olga).count() == 1


def test_the_page_says_what_is_missing_and_what_comes(client, olga):
    client.force_login(olga)
    page = client.get(PAGE).text
    assert "None yet." in page and "manage.py add_file text FILE" in page
    assert 'name="purpose"' not in page


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"title": ""}, "This field is required"),
        ({"texts": []}, "This field is required"),
        ({"size": "100"}, "greater than or equal to 256"),
        ({"purpose": "poetry"}, "not one of the available choices"),
        ({"steps": ["lower"]}, "not one of the available choices"),
    ],
)
def test_a_form_that_makes_no_sense_starts_nothing_and_says_why(client, olga, text, changes, words):
    client.force_login(olga)
    page = client.post(PAGE, filled(text, **changes)).text
    assert words in page and "Nothing was started yet" in page and not Making.objects.exists()


def test_another_like_it_is_filled_in_as_that_one(client, olga, text):
    client.force_login(olga)
    making = claimed(text, size=777, purpose="causal", without=("accents",))
    form = client.get(f"{PAGE}?like={making.pk}").context["form"]
    assert form["size"].value() == 777 and form["purpose"].value() == "causal"
    assert "accents" not in form["steps"].value() and "danda" in form["steps"].value()


def test_too_many_that_wait_are_refused(client, olga, text):
    client.force_login(olga)
    plan = Wanted().model_dump(mode="json")
    Making.objects.bulk_create(Making(title="One", plan=plan) for _ in range(20))
    assert "are waiting already" in client.post(PAGE, filled(text)).text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n \n", "there is no text in 1 file."),
        (b"\xff\xfe\xff\n" * 9, "there is no text in 1 file; 0-odd.txt: it is UTF-16"),
        (b"\x89PNG\n\xff\xff\n", "2 lines cannot be read, the first one is line 1 of 0-odd.txt"),
    ],
)
def test_texts_that_are_none_are_refused_with_the_reason(text, tmp_path, content, words):
    making = claimed(add(tmp_path, "odd.txt", content))
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


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"LAB_MEMORY_MB": 1}, "needed more than 1 MB"),
        ({"LAB_MINUTES": 0}, "took more than 0 minutes"),
    ],
)
def test_b10_one_over_a_limit_is_ended_and_says_what_to_change(text, settings, limit, words):
    for name, value in limit.items():
        setattr(settings, name, value)
    making = claimed(text)
    do(making, threading.Event())
    making.refresh_from_db()
    assert making.state == State.FAILED and words in making.reason
    assert "choose fewer texts" in making.reason and not _programs()


@pytest.mark.django_db(transaction=True)
def test_b10_one_that_is_killed_says_so_and_can_be_made_again(large):
    job = threading.Thread(target=_work)
    job.start()
    _until(_programs)
    os.kill(_programs()[0].pid, signal.SIGKILL)
    job.join(DEADLINE_S)
    killed = Making.objects.get()
    assert killed.state == State.FAILED
    assert "SIGKILL, as systems do when memory runs out" in killed.reason
    assert services.claim(timezone.now()) is None


@pytest.mark.django_db(transaction=True)
def test_b07_two_jobs_make_one_tokenizer_once_and_cancelling_ends_it(client, olga, large):
    client.force_login(olga)
    jobs = [threading.Thread(target=_work) for _ in range(2)]
    for job in jobs:
        job.start()
    _until(lambda: Making.objects.get().share > 0)
    assert len(_programs()) == 1
    told = client.get(f"{PAGE}making/{large.pk}/progress/").json()
    assert 0 < told["percent"] < 100 and "documents" in told["doing"]
    client.post(f"{PAGE}making/{large.pk}/cancel/")
    for job in jobs:
        job.join(DEADLINE_S)
    assert not _programs()
    large.refresh_from_db()
    assert (large.state, large.reason, large.artifact) == (State.CANCELLED, "by olga", None)
    assert "Cancelled: by olga" in client.get(f"{PAGE}making/{large.pk}/").text
    client.post(f"{PAGE}making/{large.pk}/cancel/")
    assert Entry.objects.filter(action="tokenizer.cancelled").count() == 1


def test_one_whose_job_died_is_given_up(text):
    making = claimed(text)
    services.give_up_silent(timezone.now())
    assert Making.objects.get().state == State.RUNNING
    services.give_up_silent(timezone.now() + SILENT + timedelta(seconds=1))
    making.refresh_from_db()
    assert (making.state, "start it again" in making.reason) == (State.FAILED, True)


def test_a_preview_of_a_damaged_or_missing_file_says_so(client, olga, tmp_path):
    client.force_login(olga)
    (tmp_path / "tokenizer.json").write_text("{")
    broken = register_file(tmp_path / "tokenizer.json", Kind.TOKENIZER, title="Odd", vocab_size=9)
    asked = {"text": "words"}
    assert "is not a tokenizer" in client.post(f"{PAGE}{broken.pk}/", asked).text
    absolute_path(broken.path).unlink()
    assert "not on the site&#x27;s disk" in client.post(f"{PAGE}{broken.pk}/", asked).text
    assert "This field is required" in client.post(f"{PAGE}{broken.pk}/", {"text": ""}).text
    assert (
        "at most 5000 characters" in client.post(f"{PAGE}{broken.pk}/", {"text": "x" * 9999}).text
    )


def test_files_are_added_by_whoever_runs_the_site(db, tmp_path):
    (tmp_path / "poem.txt").write_text("বর্ষা\n")
    call_command("add_file", "text", str(tmp_path / "poem.txt"), credit="me", verbosity=0)
    found = Artifact.objects.get()
    assert (found.kind, found.title, found.credit) == (Kind.TEXT, "poem.txt", "me")
    with pytest.raises(CommandError, match="it is no tokenizer"):
        call_command("add_file", "tokenizer", str(tmp_path / "poem.txt"))
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("add_file", "text", str(tmp_path / "nothing.txt"))


@pytest.fixture
def large(tmp_path, transactional_db) -> Making:
    """One that takes long enough to be interrupted."""
    lines = (f"{line} {number}" for number in range(20_000) for line in EVERYTHING)
    making = Making.objects.create(title="Large", plan=Wanted().model_dump(mode="json"))
    making.texts.set([add(tmp_path, "large.txt", "\n".join(lines))])
    return making


def _work() -> None:
    try:
        tasks.work()
    finally:
        connection.close()


def _until(condition) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _programs() -> list[psutil.Process]:
    """Tokenizers that this process is still having made."""
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "tokenizer" in one.cmdline()]
