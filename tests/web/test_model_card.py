"""The description of a model: facts alone, and nobody's text can change more than its own place."""

from __future__ import annotations

import html

import markdown
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import make_collaboration, make_device, make_file, make_session, make_user
from tests.web.registered import add
from trainer import catalogue
from trainer.recipe import Choice, DataSet, Text
from webapp.accounts.services import set_listed, set_named
from webapp.collaborations.models import Collaboration, Visibility
from webapp.core.jobs import State
from webapp.core.templatetags import markdown_words
from webapp.core.text import one_line
from webapp.credit.models import HourlyCredit
from webapp.evaluations.models import Baseline, Evaluation, Task
from webapp.registry.card import PIPELINES, card

NASTY = "a\n---\n# b | <script>x</script> [c](javascript:d) `e` **f** @g https://h.example &amp; \\"


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


def front_of(text):
    return yaml.safe_load(text.removeprefix("---\n").split("\n---\n", 1)[0])


def credit(collaboration, name, samples, hour, **flags):
    user = make_user(name, **flags)
    device, _ = make_device(user)
    make_session(device, collaboration)
    HourlyCredit.objects.create(
        collaboration=collaboration, user=user, device=device, hour=hour,
        samples=samples, tokens=10 * samples, compute_s=1800,
    )  # fmt: skip
    return user


def evaluated(checkpoint):
    task = Task.objects.create(collaboration=checkpoint.collaboration, title="Names", kind="tags")
    scores = {"span_f1": {"mean": 0.7512, "std": 0.02, "n": 3, "values": [0.75] * 3}}
    result = {"metric": "span_f1", "scores": scores, "baselines": [], "data": {}}
    Evaluation.objects.create(
        task=task, checkpoint=checkpoint, round=checkpoint.round, title="Names", result=result,
        sha256=checkpoint.artifact.sha256, state=State.FINISHED,
    )  # fmt: skip
    Baseline.objects.create(task=task, name="XLM-R", score=96.48, std=0.22, source="its paper")


def test_it_has_the_facts_and_says_what_is_unknown(db, tmp_path):
    texts = (
        Text(
            kind="site", file=make_file(b"x", "leads.txt"), credit="Wikipedia, CC BY-SA", weight=3
        ),
        Text(kind="datasets", dataset=DataSet(name="org/poems", config="bn")),
        Text(kind="http", url="https://texts.example/a.txt?key=s3cret"),
        Text(kind="local", path="/home/olga/private/b.txt"),
    )
    collaboration = make_collaboration("demo", texts=texts)
    checkpoint = add(collaboration, tmp_path, 40, held_out=3.25)
    evaluated(checkpoint)
    ada = credit(collaboration, "Ada", 100, checkpoint.created_at, is_named=True)
    credit(collaboration, "Ben", 200, checkpoint.created_at)
    credit(collaboration, "Cid", 10, checkpoint.created_at, is_named=True, is_listed=False)
    text = card(checkpoint)
    front = front_of(text)
    assert (front["library_name"], front["pipeline_tag"]) == ("transformers", "fill-mask")
    assert front["datasets"] == ["org/poems"] and "albert" in front["tags"]
    for fact in (
        f"of round 40, SHA-256 {checkpoint.artifact.sha256}",
        "| Loss on held-out text | 3.25 |",
        "| leads.txt | 50 % | Wikipedia, CC BY-SA |",
        "| org/poems bn train | 17 % | unknown |",
        "| texts.example/a.txt | 17 % | unknown |",
        "| b.txt | 17 % | unknown |",
        "| Sequences | 310 |",
        "| Target tokens | 3,100 |",
        "| Hours of computing, all devices together | 1.5 |",
        "| Devices | 3 |",
        f"| Recipe | SHA-256 {collaboration.revision.sha256} |",
        "- By name: Ada\n",
        "And 2 more, who did not ask to be named.",
        "| this one | 75.12 ± 2.00 (n = 3) | measured by the site |",
        "| XLM-R | 96.48 ± 0.22 | as the organisers say: its paper |",
        "Not known to the site, because nobody told it: the licence of the model",
    ):
        assert fact in text, fact
    for secret in ("s3cret", "/home", "Ben", "Cid"):
        assert secret not in text
    set_listed(ada, is_listed=False)
    assert "Ada" not in card(checkpoint) and "none of whom asked to be named" in card(checkpoint)


def test_one_person_and_passes_in_16_bits_are_told_as_such(db, tmp_path):
    checkpoint = add(make_collaboration("demo", precision="mixed"), tmp_path, 40)
    credit(checkpoint.collaboration, "Ben", 200, checkpoint.created_at)
    text = card(checkpoint)
    assert "\nOne person, who did not ask to be named.\n" in text
    assert "| Precision | passes in 16 bits where a device is faster" in text


@pytest.mark.parametrize("family", sorted(catalogue.plugins("families")))
def test_it_says_how_each_kind_of_model_is_loaded(family):
    objective = catalogue.create("families", Choice(name=family)).objective
    assert PIPELINES[objective.kind][1].startswith("AutoModelFor")


def test_where_nothing_is_known_it_says_so(db, tmp_path):
    collaboration = make_collaboration("demo")
    checkpoint = add(collaboration, tmp_path, 40)
    collaboration.checkpoints.update(loss=None)
    text = card(collaboration.checkpoints.get(pk=checkpoint.pk))
    assert "| Loss while training | unknown |" in text
    assert "| Loss on held-out text | unknown |" in text
    assert "Nobody has credit for it that is known." in text and "None is known." in text
    assert "| Began | unknown |" in text and "None" not in text.replace("None is known", "")


def test_no_text_of_a_person_is_more_than_text(db, tmp_path, client):
    texts = (Text(kind="site", file=make_file(b"x", "leads.txt"), credit=NASTY),)
    collaboration = make_collaboration("demo", texts=texts)
    collaboration.title, collaboration.summary = NASTY[:80], NASTY
    collaboration.save()
    checkpoint = add(collaboration, tmp_path, 40)
    credit(collaboration, NASTY[:40], 100, checkpoint.created_at, is_named=True)
    evaluated(checkpoint)
    Task.objects.update(title=NASTY[:80])
    Baseline.objects.update(name=NASTY[:80], source=NASTY)
    text = card(checkpoint)
    plain = text
    for value in (NASTY, NASTY[:80], NASTY[:40]):
        plain = plain.replace(markdown_words.md(value), "WORDS")
    assert plain.count("WORDS") == 7
    for sign in ("<script", "javascript:", "h.example", "@g", "**f**"):
        assert sign not in plain
    page = client.get(f"/c/demo/checkpoints/{checkpoint.pk}/").text
    article = page.split("<article")[1].split("</article>")[0]
    assert article.count("<h1") == 1 and "<script" not in article
    assert article.count("<a ") == 1 and "&lt;script&gt;" in article
    assert article.count("<table") == 4
    assert front_of(text)["library_name"] == "transformers"


@given(st.text(max_size=80))
def test_words_come_out_of_markdown_and_yaml_as_they_went_in(words):
    table = f"| a | b |\n|---|---|\n| x | {markdown_words.md(words)} |"
    shown = markdown.markdown(table, extensions=["tables"])
    _, _, cell = shown.split("<td>")
    cell = cell.split("</td>")[0]
    assert "<" not in cell and html.unescape(cell) == one_line(words, 500)
    assert yaml.safe_load(f"a: {markdown_words.yaml(words)}") == {"a": one_line(words, 500)}


def test_the_page_and_the_file_are_for_those_who_may_see_the_checkpoints(
    client, collaboration, tmp_path
):
    checkpoint = add(collaboration, tmp_path, 40)
    page = f"/c/demo/checkpoints/{checkpoint.pk}/"
    assert f'href="{page}"' in client.get("/c/demo/checkpoints/").text
    assert "of round 40" in client.get(page).text
    answer = client.get(f"{page}README.md")
    assert answer.text == card(checkpoint) and "attachment" in answer["Content-Disposition"]
    other = make_collaboration("other")
    assert client.get(f"/c/{other.slug}/checkpoints/{checkpoint.pk}/").status_code == 404
    Collaboration.objects.update(visibility=Visibility.ORGANISERS)
    assert client.get(page).status_code == client.get(f"{page}README.md").status_code == 403


def test_people_are_named_only_if_they_say_so(client, alice):
    assert not alice.is_named
    client.force_login(alice)
    client.post("/me/settings/", {"name": "alice", "is_listed": "on", "is_named": "on"})
    alice.refresh_from_db()
    assert alice.is_named and "Name me with models" in client.get("/me/").text
    set_named(alice, is_named=False)
    alice.refresh_from_db()
    assert not alice.is_named
