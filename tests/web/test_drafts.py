"""A draft: what it asks of each machine, whether its text can be fetched, and its end."""

from __future__ import annotations

import pytest

from tests.answering import Answering
from tests.factories import make_collaboration
from tests.ports import free_port
from trainer.recipe import Round, Text
from webapp.audit.models import Entry
from webapp.collaborations.models import Collaboration
from webapp.collaborations.sizes import size_of
from webapp.core.templatetags.ui import byte_size
from webapp.live import selectors


class TextServer(Answering):
    def answer(self, method, path, body):
        return (200 if path == "/there.txt" else 404), b"a document\n"


@pytest.fixture
def text_server():
    server = TextServer().start()
    yield server.url
    server.stop()


@pytest.fixture
def organiser(client, olga):
    client.force_login(olga)
    return client


def _draft(slug: str, url: str) -> Collaboration:
    return make_collaboration(slug, state="draft", texts=(Text(kind="http", url=url),))


def test_a_draft_whose_text_cannot_be_fetched_opens_only_when_told_so(organiser, text_server):
    for url, why in (
        (f"{text_server}/gone.txt", "it answers 404"),
        (f"http://127.0.0.1:{free_port()}/x", "refused"),
    ):
        draft = _draft(f"d{why[:2].strip()}", url)
        page = organiser.post(f"/console/c/{draft.slug}/open/", follow=True).content.decode()
        draft.refresh_from_db()
        assert draft.state == "draft" and why in page and url in page
        organiser.post(f"/console/c/{draft.slug}/open/", {"anyway": "on"})
        draft.refresh_from_db()
        assert draft.state == "open"


def test_a_draft_whose_text_answers_opens(organiser, text_server):
    draft = _draft("fine", f"{text_server}/there.txt")
    organiser.post("/console/c/fine/open/")
    draft.refresh_from_db()
    assert draft.state == "open"


def test_a_draft_is_deleted_with_a_tick_and_nothing_else_is(organiser, collaboration):
    make_collaboration("night", state="draft")
    organiser.post("/console/c/night/delete/")
    assert Collaboration.objects.filter(slug="night").exists()
    for slug in ("night", "demo"):
        page = organiser.post(f"/console/c/{slug}/delete/", {"confirmation": "on"}, follow=True)
    assert "only drafts can be deleted" in page.content.decode()
    assert list(Collaboration.objects.values_list("slug", flat=True)) == ["demo"]
    entry = Entry.objects.get(action="collaboration.deleted")
    assert (entry.actor_name, entry.target) == ("olga", "Night")


def test_the_console_tells_the_size_and_what_devices_wait_for(
    organiser, collaboration, monkeypatch
):
    now = selectors.snapshot(collaboration)
    waiting = {"name": "ada", "activity": "waiting", "reason": "the text answers 404"}
    monkeypatch.setattr("webapp.pages.console.snapshot", lambda _: now | {"members": [waiting]})
    page = organiser.get("/console/c/demo/").content.decode()
    assert "1 device: the text answers 404" in page and "parameters: about" in page


def test_what_a_coordinator_that_averages_alone_moves_is_shown_beforehand(organiser):
    timing = Round(target_samples=64, averaged_by="coordinator", codec="fp32")
    draft = make_collaboration("star", state="draft", round=timing)
    each = size_of(draft.recipe).parameters * 2 * 4
    page = organiser.get("/console/c/star/").content.decode()
    assert f"receives {byte_size(each)} a round for each device" in page
    assert f"with ten devices {byte_size(10 * each)}" in page
    page = organiser.get("/c/star/").content.decode()
    assert f"costs it {byte_size(each)} a round for each device: 0 B with the 0" in page
    make_collaboration("shared", state="draft")
    assert "averages alone" not in organiser.get("/console/c/shared/").content.decode()
    assert "average among themselves" in organiser.get("/c/shared/").content.decode()
