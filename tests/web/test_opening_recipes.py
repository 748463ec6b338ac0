"""A ready recipe becomes a collaboration with its files, its tokenizer and its tasks."""

from __future__ import annotations

import json
import threading
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.factories import make_collaboration
from tests.web.hub_stand_in import hub, listing, published_tokenizer
from trainer import catalogue
from trainer.text.tokenizer import Tokenizer
from trainer.tokenizing import Wanted
from webapp.accounts.models import User
from webapp.artifacts.models import Artifact
from webapp.artifacts.storage import absolute_path
from webapp.collaborations.models import Collaboration, State
from webapp.core.errors import UserError
from webapp.evaluations.data import place_of
from webapp.recipes import ready, tokenizer
from webapp.recipes.corpora import bengali, english
from webapp.recipes.corpora.base import Corpus, Example
from webapp.recipes.opening import open_ready
from webapp.recipes.tasks import missing
from webapp.tokenizers.models import Making
from webapp.tokenizers.services import claim

pytestmark = pytest.mark.django_db
SENTENCES = [f"আমি {number} দিন বাড়ি যাব না, কারণ বৃষ্টি হচ্ছে।" for number in range(300)]
POTATOES = [
    f"Potato {number} is peeled, boiled and eaten with salt, butter and a little patience."
    for number in range(200)
]


@pytest.fixture(autouse=True)
def data(tmp_path, settings, monkeypatch):
    """Folders of its own, and short texts in place of the packages'."""
    settings.DATA_DIR = tmp_path
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"
    for module, documents in ((english, POTATOES), (bengali, SENTENCES)):
        corpus = Corpus(module.__name__.split(".")[-1], "Written for this test", documents)
        monkeypatch.setattr(module, "corpus", lambda corpus=corpus: corpus)
        labels = [Example(text, "even" if n % 2 else "odd") for n, text in enumerate(documents)]
        for name in module.LABELLED:
            monkeypatch.setitem(module.LABELLED, name, lambda labels=labels: labels)
    return tmp_path


def opened(name, by, **options) -> Collaboration:
    offline = options.pop("offline", False)
    return open_ready(ready.read(name, offline=offline), by=by, tell=lambda _: None, **options)[0]


@pytest.mark.parametrize("name", ["demo-causal", "demo-en"])
def test_a_demo_is_open_with_real_files_and_is_opened_once(data, olga, name):
    collaboration = opened(name, olga)
    assert collaboration.state == State.OPEN and collaboration.swarm_port
    assert collaboration.text_credit == "Written for this test"
    recipe = collaboration.recipe
    for file in (recipe.tokenizer.file, recipe.texts[0].file, recipe.held_out.file):
        artifact = Artifact.objects.get(sha256=file.sha256)
        assert absolute_path(artifact.path).stat().st_size == file.size_bytes
    assert all(place_of(task) for task in collaboration.evaluation_tasks.all())
    again, is_new = open_ready(ready.read(name), by=olga)
    assert (again, is_new) == (collaboration, False)
    assert Collaboration.objects.count() == 1


def test_the_tokenizer_of_the_same_text_is_trained_once(olga, monkeypatch):
    first = opened("demo-causal", olga).recipe
    monkeypatch.setattr(tokenizer.subprocess, "run", lambda *_, **__: pytest.fail("trained again"))
    second = opened("demo-causal", olga, slug="again").recipe
    assert (second.tokenizer, second.collaboration) == (first.tokenizer, "again")


def test_the_reduced_sahajbert_has_its_tokenizer_made_by_a_job_and_labelled_data_put_down(
    data, olga, monkeypatch
):
    found = ready.read("sahajbert-bn", offline=True)
    smaller = found.tokenizer.model_copy(update={"size": 300})
    found = found.model_copy(update={"tokenizer": smaller})
    said = []
    collaboration, is_new = open_ready(found, by=olga, tell=said.append)
    assert is_new and "300 tokens" in said[0]
    (making,) = Making.objects.all()
    recipe = collaboration.recipe
    assert making.artifact.sha256 == recipe.tokenizer.file.sha256
    file = Tokenizer(absolute_path(making.artifact.path), recipe.tokenizer.vocab_size)
    assert file.start is not None and file.encode(SENTENCES[0])
    (task,) = collaboration.evaluation_tasks.all()
    rows = [json.loads(line) for line in place_of(task).read_text().splitlines()]
    assert rows[0] == {"text": SENTENCES[0], "label": "odd"} and len(rows) == len(SENTENCES)
    assert open_ready(found, by=olga) == (collaboration, False)
    open_ready(found, by=olga, slug="again", tell=said.append)
    assert Making.objects.count() == 1 and len(said) == 1


@pytest.mark.django_db(transaction=True)
def test_a_site_that_is_stopped_while_another_tokenizer_is_made_opens_nothing(olga):
    plan = Wanted(size=300).model_dump(mode="json")
    making = Making.objects.create(title="Before", plan=plan)
    assert claim(timezone.now()) == making
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(UserError, match="stopped before there was a tokenizer"):
        opened("sahajbert-bn", olga, offline=True, stopping=stopping)
    assert not Collaboration.objects.exists()


def test_sahajbert_is_opened_where_a_hub_has_its_texts_and_tokenizer(olga, monkeypatch):
    revision = ready.read("sahajbert-bn").tokenizer.revision
    places = dict(
        [
            listing("wikimedia/wikipedia", "20231101.bn"),
            listing("oscar-corpus/oscar", "unshuffled_deduplicated_bn"),
            (f"/neuropark/sahajBERT/resolve/{revision}/tokenizer.json", published_tokenizer()),
        ]
    )
    with hub(places) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        collaboration = opened("sahajbert-bn", olga)
    assert sorted(asked) == sorted(places)
    recipe = collaboration.recipe
    assert catalogue.trained_parameters(recipe) == 18_105_474
    assert [text.kind for text in recipe.texts] == ["datasets", "datasets"]
    assert recipe.held_out is None
    file = Artifact.objects.get(sha256=recipe.tokenizer.file.sha256)
    read = Tokenizer(absolute_path(file.path), recipe.tokenizer.vocab_size)
    assert (read.pad, read.start, read.end, read.mask) == (0, 2, 3, 4)
    assert read.encode("আমি বাড়ি |") == [9, 10, 5, 6]
    tasks = collaboration.evaluation_tasks.all()
    assert [task.baselines.count() for task in tasks] == [4, 4]
    named = ["unimelb-nlp/wikiann bn", "ai4bharat/indic_glue sna.bn"]
    assert [task.dataset for task in tasks] == named and not missing(collaboration)
    assert collaboration.state == State.OPEN
    assert opened("sahajbert-bn", olga) == collaboration  # which needs no hub


def test_a_hub_that_has_not_what_it_needs_is_told_and_nothing_is_opened(olga, monkeypatch):
    with hub({}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(UserError, match=rf"{address}/api/.* answers 404"):
            opened("sahajbert-bn", olga)
    with pytest.raises(UserError, match=rf"hub at {address} cannot be reached.*--offline"):
        opened("sahajbert-bn", olga)
    assert not Collaboration.objects.exists() and not Artifact.objects.exists()


def test_what_the_hub_has_instead_of_the_tokenizer_is_refused(olga, monkeypatch):
    found = ready.read("sahajbert-bn")
    place = f"/neuropark/sahajBERT/resolve/{found.tokenizer.revision}/tokenizer.json"
    texts = dict(listing(text.dataset.name, text.dataset.config) for text in found.texts)
    few = found.model_copy(update={"tokenizer": found.tokenizer.model_copy(update={"size": 10})})
    for wanted, content, said in (
        (found, b"<html>", "no tokenizer.json"),
        (few, published_tokenizer(), "has 11 tokens, and the recipe says 10"),
    ):
        with hub({**texts, place: content}) as (address, _):
            monkeypatch.setenv("HF_ENDPOINT", address)
            with pytest.raises(UserError, match=said):
                open_ready(wanted, by=olga)
    assert not Collaboration.objects.exists() and not Artifact.objects.exists()


def test_an_address_of_another_collaboration_is_refused_with_what_to_do(olga):
    make_collaboration("demo", organiser=olga)
    with pytest.raises(UserError, match=r"another collaboration at /c/demo/.*--slug"):
        opened("demo-causal", olga)
    with pytest.raises(UserError, match="is no short name"):
        opened("demo-causal", olga, slug="No Name!")


def test_a_recipe_that_differs_is_not_taken_for_the_one_that_is_open(olga):
    existing = opened("demo-causal", olga)
    found = ready.read("demo-causal")
    bengal, heavy = ({"name": "bengali"}, {"weight": 2.0})
    for part, changes in (
        ("texts", {"texts": (found.texts[0].model_copy(update=bengal),)}),
        ("texts", {"texts": (found.texts[0].model_copy(update=heavy),)}),
        ("texts", {"texts": found.texts * 2}),
        ("tokenizer", {"tokenizer": found.tokenizer.model_copy(update={"size": 300})}),
        ("optimizer", {"recipe": found.recipe | {"optimizer": {"learning_rate": 0.5}}}),
    ):
        with pytest.raises(
            UserError, match=rf"another .* Not as in this recipe: {part}\. .*--slug"
        ):
            open_ready(found.model_copy(update=changes), by=olga)
    assert open_ready(found, by=olga) == (existing, False)


def test_a_task_whose_data_somebody_has_to_put_down_is_told_with_the_place(olga, data):
    found = ready.read("demo-en")
    task = found.tasks[0].model_copy(update={"data": "ours"})
    collaboration, _ = open_ready(found.model_copy(update={"tasks": (task,)}), by=olga)
    assert missing(collaboration) == [(task.title, str(data / "evaluation" / "ours"))]


def test_the_command_lists_opens_and_says_in_a_line_what_is_wrong(data):
    out = StringIO()
    call_command("open_recipe", stdout=out)
    assert (
        "sahajbert-bn    sahajBERT of Bengali (needs a hub; --offline does not)" in out.getvalue()
    )
    with pytest.raises(CommandError, match=r"no recipe called 'nothing'. There are: demo-causal"):
        call_command("open_recipe", "nothing", stdout=out)
    assert not User.objects.exists()
    call_command("open_recipe", "demo-causal", stdout=out)
    call_command("open_recipe", "demo-causal", stdout=out)
    assert "A small model of English is open: http" in out.getvalue()
    assert "was there already, and is open" in out.getvalue()
    assert out.getvalue().count("Organiser account") == 1


def test_a_recipe_that_is_broken_is_listed_with_its_reason_and_so_are_the_others(data, monkeypatch):
    good = (ready.FOLDER / "demo-causal.toml").read_text()
    monkeypatch.setattr(ready, "FOLDER", data)
    (data / "a-cut-off.toml").write_text("title = ")
    (data / "b-nothing.toml").write_text('title = "Nothing"')
    (data / "c-folder.toml").mkdir()
    (data / "d-good.toml").write_text(good)
    out = StringIO()
    call_command("open_recipe", stdout=out)
    cut_off, nothing, folder, fine = out.getvalue().splitlines()
    assert cut_off.startswith("a-cut-off       cannot be opened: ") and "is not TOML" in cut_off
    assert "b-nothing.toml is no recipe: texts: Field required." in nothing
    assert "c-folder.toml cannot be read: Is a directory." in folder
    assert fine == "d-good          A small model of English"
