"""What a fresh site is seeded with."""

from __future__ import annotations

import importlib.metadata
import json

import pytest
from django.contrib.auth import authenticate

from webapp.accounts.models import User
from webapp.artifacts.models import Artifact
from webapp.collaborations.models import Collaboration, State
from webapp.devices.models import EnrolmentCode
from webapp.ops import demo, demo_text, organiser, volunteer


@pytest.fixture
def data(tmp_path, settings):
    settings.DATA_DIR = tmp_path
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"
    return tmp_path


@pytest.fixture
def few_documents(monkeypatch):
    documents = [
        f"Potato {number} is peeled, boiled and eaten with salt, butter and a little patience."
        for number in range(200)
    ]
    text = demo_text.DemoText("potatoes", "Written for this test, public domain", documents)
    monkeypatch.setattr(demo_text, "find", lambda: text)
    return text


def test_the_first_organiser_can_log_in_and_is_made_once(db):
    made = organiser.make_first()
    assert authenticate(email=made.email, password=made.password).is_organiser
    assert made.password in str(made)
    assert organiser.make_first() is None


def test_an_existing_organiser_is_left_alone(olga):
    assert organiser.make_first() is None
    assert User.objects.filter(is_staff=True).count() == 1


def test_the_demo_is_open_with_real_files_and_is_seeded_once(data, few_documents, olga):
    collaboration = demo.seed()
    assert collaboration.state == State.OPEN
    assert collaboration.swarm_port
    assert collaboration.text_credit == few_documents.credit
    recipe = collaboration.recipe
    for file in (recipe.tokenizer.file, recipe.texts[0].file, recipe.held_out.file):
        artifact = Artifact.objects.get(sha256=file.sha256)
        assert (data / "artifacts" / artifact.path).stat().st_size == file.size_bytes
    assert demo.seed() == collaboration
    assert Collaboration.objects.count() == 1


def test_the_tokenizer_of_the_same_text_is_trained_once(data, few_documents, olga, monkeypatch):
    first = demo.seed().recipe
    Collaboration.objects.all().delete()
    monkeypatch.setattr(demo.subprocess, "run", lambda *_, **__: pytest.fail("trained again"))
    assert demo.seed().recipe == first


def test_one_text_in_twenty_is_held_out_wherever_it_is_decided():
    texts = [f"text {number}" for number in range(4000)]
    share = sum(map(demo_text.is_held_out, texts)) / len(texts)
    assert 0.03 < share < 0.07
    assert demo_text.is_held_out("text 7") == demo_text.is_held_out("text 7")


def test_wikipedia_is_used_where_it_is_installed_and_credited():
    try:
        importlib.metadata.distribution(demo_text.PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the text package is not installed")
    text = demo_text.find()
    assert len(text.documents) > 9000
    assert "CC BY-SA 4.0" in text.credit


def test_pythons_help_topics_stand_in_and_are_credited(monkeypatch):
    monkeypatch.setattr(demo_text, "PACKAGE", "no-such-package-anywhere")
    text = demo_text.find()
    assert len(text.documents) > 1000
    assert "Python Software Foundation" in text.credit


def test_a_text_file_holds_one_document_a_line(tmp_path):
    demo_text.write(["one\ntwo", "ভাত"], tmp_path / "text.jsonl")
    lines = (tmp_path / "text.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"text": "one\ntwo"}, {"text": "ভাত"}]


def test_the_demo_volunteer_gets_a_launcher_with_a_code_and_only_one(data, collaboration):
    launcher = volunteer.prepare(collaboration)
    assert launcher.stat().st_mode & 0o777 == 0o600
    assert EnrolmentCode.objects.count() == 1
    user = User.objects.get(email=volunteer.EMAIL)
    assert user.name == "demo volunteer"
    assert not user.has_usable_password()
