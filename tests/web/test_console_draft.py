"""The form in the console: a draft is changed, never an opened one; others are duplicated."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import make_collaboration, make_recipe, make_user
from tests.web.filled import filled
from trainer import catalogue
from trainer.recipe import Choice, Text
from webapp.audit.models import Entry
from webapp.collaborations import drafts, services
from webapp.collaborations.models import Collaboration
from webapp.collaborations.selectors import version_of
from webapp.core.errors import UserError

EDIT = "/console/c/night-shift/edit/"


@pytest.fixture
def organiser(client, olga):
    client.force_login(olga)
    return client


@pytest.fixture
def draft(files, olga):
    form = filled(files, summary="By lamplight", text_url="https://example.org/more.txt")
    assert form.is_valid(), form.errors
    return form.save(by=olga)


def typed(page, **changed):
    """What a browser would send of the form on this page, with these fields typed over."""
    values = {field.html_name: field.value() for field in page.context["form"]}
    sent = {name: "" if value is None else value for name, value in values.items()}
    ticked = {name: value for name, value in sent.items() if value is not False}
    return {**ticked, "version": page.context.get("version", ""), **changed}


@pytest.mark.parametrize("strategy", sorted(catalogue.plugins("strategies")))
@pytest.mark.parametrize("family", ["albert", "causal", "llama"])
def test_a_draft_saved_as_it_is_shown_is_the_same_draft(organiser, files, olga, family, strategy):
    given = {"micro_batch": "4", "seed": "7", "optimizer__schedule": "linear"}
    given |= {"precision": "mixed"}
    given |= {"finish__held_out_loss": "2.5", f"family__{family}__layers": "2", "own_texts": "on"}
    form = filled(files, family=family, strategy=strategy, **given)
    assert form.is_valid(), form.errors
    before = form.save(by=olga).revision
    done = organiser.post(EDIT, typed(organiser.get(EDIT)), follow=True)
    assert "The draft was saved" in done.content.decode()
    assert Collaboration.objects.get().revision == before
    assert not Entry.objects.filter(action="collaboration.changed").exists()


def test_a_draft_is_changed_with_a_new_revision_and_an_audit_row(organiser, draft, files):
    before = draft.revision
    page = organiser.get(EDIT)
    assert "By lamplight" in page.content.decode()
    fields = {"title": "Day shift", "slug": "day-shift", "family__causal__layers": "5"}
    done = organiser.post(EDIT, typed(page, **fields, text_url=""), follow=True)
    assert done.redirect_chain == [("/console/c/day-shift/", 302)]
    draft.refresh_from_db()
    assert (draft.title, draft.slug, draft.state) == ("Day shift", "day-shift", "draft")
    assert draft.recipe.family.params["layers"] == 5 and len(draft.recipe.texts) == 1
    assert draft.recipe.collaboration == "day-shift"
    assert draft.revision.number == 2 and draft.revision.sha256 == draft.recipe.sha256()
    assert before.recipe.family.params["layers"] != 5
    entry = Entry.objects.get(action="collaboration.changed")
    assert entry.actor_name == "olga" and entry.detail["was at"] == "night-shift"
    assert {"Title", "Short name", "Layers"} <= set(entry.detail["changed"].split(", "))
    audit = organiser.get("/console/audit/").content.decode()
    assert "collaboration.changed" in audit and "was at: night-shift" in audit


def test_only_other_words_are_no_new_revision(organiser, draft):
    organiser.post(EDIT, typed(organiser.get(EDIT), summary="At dawn"))
    draft.refresh_from_db()
    assert (draft.summary, draft.revision.number) == ("At dawn", 1)
    assert Entry.objects.get(action="collaboration.changed").detail["changed"] == "Summary"


def test_what_was_typed_stays_when_a_field_is_wrong(organiser, draft):
    make_collaboration("taken")
    wrong = {"title": "Day shift", "slug": "taken", "optimizer__learning_rate": "7"}
    page = organiser.post(EDIT, typed(organiser.get(EDIT), **wrong))
    shown = page.content.decode()
    assert "a collaboration called taken already" in shown and "less than or equal to 1" in shown
    assert "Nothing was saved yet" in shown
    assert 'value="Day shift"' in shown and 'value="7"' in shown
    draft.refresh_from_db()
    assert draft.title == "Night shift"


def test_the_second_of_two_organisers_is_told_and_may_replace(organiser, draft):
    oscar = Client()
    oscar.force_login(make_user("oscar", is_staff=True))
    mine, theirs = organiser.get(EDIT), oscar.get(EDIT)
    oscar.post(EDIT, typed(theirs, title="Oscar's", round__target_samples="512"))
    wrong = organiser.post(EDIT, typed(mine, title="Olga's", seed="-1"))
    page = organiser.post(EDIT, typed(wrong, seed="3"))  # an error in between hides nothing
    shown = page.content.decode()
    assert "oscar changed this draft after you opened it" in shown
    assert "differs from theirs in: Title, Seed, Target samples." in shown
    assert "Olga&#x27;s" in shown and page.context["form"]["seed"].value() == "3"
    draft.refresh_from_db()
    assert draft.title == "Oscar's" and draft.recipe.round.target_samples == 512
    organiser.post(EDIT, typed(page))
    draft.refresh_from_db()
    assert draft.title == "Olga's" and draft.recipe.seed == 3


def test_the_same_form_sent_twice_changes_the_draft_once(organiser, draft):
    fields = typed(organiser.get(EDIT), seed="3")
    for _ in range(2):
        assert organiser.post(EDIT, fields).url == "/console/c/night-shift/"
    assert Entry.objects.filter(action="collaboration.changed").count() == 1


def test_an_opened_recipe_is_frozen_and_what_was_typed_becomes_a_new_draft(organiser, draft, olga):
    fields = typed(organiser.get(EDIT), seed="3")
    services.open_(draft, by=olga)
    page = organiser.post(EDIT, fields)
    shown = page.content.decode()
    assert "Night shift is open: its recipe is frozen" in shown
    assert page.context["form"]["seed"].value() == "3"
    assert 'formaction="/console/create/"' in shown and "Save the draft" not in shown
    assert "is open: its recipe is frozen" in organiser.get(EDIT, follow=True).content.decode()
    assert "Edit the draft" not in organiser.get("/console/c/night-shift/").content.decode()
    draft.refresh_from_db()
    assert draft.recipe.seed == 0
    assert "already" in organiser.post("/console/create/", fields).content.decode()
    organiser.post("/console/create/", fields | {"slug": "night-two"})
    assert Collaboration.objects.get(slug="night-two").recipe.seed == 3


def test_a_draft_that_was_deleted_meanwhile_leaves_what_was_typed(organiser, draft, olga):
    fields = typed(organiser.get(EDIT), seed="3")
    drafts.delete(draft, by=olga)
    page = organiser.post(EDIT, fields)
    assert "not there any more" in page.content.decode()
    assert page.context["form"]["seed"].value() == "3"
    assert organiser.get(EDIT).status_code == 404
    organiser.post("/console/create/", fields)
    assert Collaboration.objects.get().recipe.seed == 3


def test_only_organisers_change_or_duplicate_a_draft(client, alice, mallory, draft):
    version = version_of(draft)
    for path in (EDIT, "/console/create/?like=night-shift"):
        assert client.get(path).url.startswith("/accounts/login/")
        assert client.post(path).url.startswith("/accounts/login/")
        for person in (alice, mallory):
            other = Client()
            other.force_login(person)
            assert other.get(path).status_code == other.post(path).status_code == 403
    words = {"seen": version, "title": "x", "summary": "", "changed": []}
    with pytest.raises(UserError) as refused:
        drafts.change(draft, recipe=draft.recipe, by=alice, **words)
    assert refused.value.kind == "forbidden"
    draft.refresh_from_db()
    assert version_of(draft) == version


def test_the_form_needs_a_csrf_token(olga, draft):
    client = Client(enforce_csrf_checks=True)
    client.force_login(olga)
    assert client.post(EDIT, {"title": "x"}).status_code == 403


def test_a_draft_is_opened_only_as_it_was_looked_at(organiser, draft):
    seen = organiser.get("/console/c/night-shift/").context["version"]
    organiser.post(EDIT, typed(organiser.get(EDIT), seed="3"))
    opening = {"version": seen, "anyway": "on"}
    page = organiser.post("/console/c/night-shift/open/", opening, follow=True)
    assert "changed after you looked" in page.content.decode()
    draft.refresh_from_db()
    assert draft.state == "draft"
    organiser.post("/console/c/night-shift/open/", {**opening, "version": page.context["version"]})
    draft.refresh_from_db()
    assert draft.state == "open" and draft.recipe.seed == 3


def test_any_collaboration_is_duplicated_as_a_draft(organiser, draft, olga):
    services.open_(draft, by=olga)
    page = organiser.get("/console/c/night-shift/").content.decode()
    assert "/console/create/?like=night-shift" in page
    form = organiser.get("/console/create/?like=night-shift")
    assert "Filled in as Night shift is" in form.content.decode()
    assert "no place for some of it" not in form.content.decode()
    organiser.post("/console/create/?like=night-shift", typed(form))
    copy = Collaboration.objects.get(slug="copy-of-night-shift")
    assert (copy.state, copy.title) == ("draft", "Copy of Night shift")
    renamed = copy.recipe.model_copy(update={"collaboration": "night-shift"})
    assert renamed.sha256() == draft.recipe.sha256()
    assert organiser.get("/console/create/?like=nothing").status_code == 404


def test_what_the_form_cannot_show_is_told_before_it_is_lost(organiser, files):
    texts = [Text(kind="http", url=f"https://example.org/{number}.txt") for number in (1, 2)]
    local, held_out = Text(kind="local", path="/data/own.txt"), texts[0]
    make_collaboration(
        "old",
        state="draft",
        texts=(*texts, local, *make_recipe().texts),
        held_out=held_out,
        family=Choice(name="causal"),
    )
    for path in ("/console/c/old/edit/", "/console/create/?like=old"):
        page = organiser.get(path)
        shown = page.content.decode()
        for words in (
            "the text /data/own.txt of each device",
            "the tokenizer tokenizer.json, which the site does not have any more",
            "the text train.jsonl, which",
            "the held-out text https://example.org/1.txt",
        ):
            assert words in shown
        assert page.context["form"]["text_url"].value().splitlines() == [
            "https://example.org/1.txt",
            "https://example.org/2.txt",
        ]
