"""The page of one round: who took part with what, and who may see how fair the model is."""

from __future__ import annotations

import time

import pytest

from tests.factories import make_collaboration, make_device, make_session, make_user
from tests.live.agents import receipt, verdict
from trainer.recipe import Choice, Text
from trainer.wire import Report, Role, RoundSeen
from webapp.collaborations.services import coordinator_device
from webapp.credit.models import Receipt
from webapp.live.store import store

TOLD = "the model is the mean of what the devices made of it"


@pytest.fixture
def notes(olga):
    return make_collaboration(
        "notes", organiser=olga, texts=(Text(kind="private"),), strategy=Choice(name="fedavg")
    )


@pytest.fixture
def coordinator(notes):
    return make_session(coordinator_device(notes)[0], notes, role=Role.COORDINATOR)


def report(session, body, seq=1):
    store([(session.pk, Report(seq=seq, at=time.time(), body=body))])


def member(collaboration, name, number=5, seq=1, session=None, **figures):
    session = session or make_session(make_device(make_user(name))[0], collaboration)
    figures = {"steps": 10, "weight": 0.25, "norm": 2.0, "drift": 1.5} | figures
    report(session, receipt(number, members=3).model_copy(update=figures), seq)
    return session


def see(session, number=5, seq=1, **figures):
    figures = {"mean_norm": 1.0, "told": TOLD, "asked": 4} | figures
    seen = verdict(number, members=3).model_copy(update=figures)
    report(session, RoundSeen(verdict=seen), seq)


def test_a_round_tells_who_took_part_and_what_came_of_it(client, notes, coordinator):
    see(coordinator)
    member(notes, "ada", steps=12, weight=0.75)
    member(notes, "bob", steps=4, drift=0.5)
    page = client.get("/c/notes/rounds/5/").text
    rows = [row.split("</tr>")[0] for row in page.split("<tr>")[2:]]
    assert "ada" in rows[0] and "12</td>" in rows[0] and "75 %" in rows[0]
    assert "bob" in rows[1] and "25 %" in rows[1]
    assert "The model is the mean of what the devices made of it." in page
    assert "3 of 4 chosen peers" in page
    assert "The coordinator says so" in page and "4 peers were chosen to train in it" in page
    assert "The average is 1 long" in page and "That is 50 %" in page and "led them 1.25" in page
    assert "The receipt of 1 more device has not come." in page
    assert "McMahan et al. 2017" in page and "wᵢ ← wᵢ - r g(wᵢ)" in page
    live = client.get("/c/notes/").text
    assert "75 %" in live and "wᵢ ← wᵢ - r g(wᵢ)" in live


def test_devices_with_older_agents_have_dashes_and_the_page_says_so(client, notes, coordinator):
    see(coordinator, mean_norm=None, told="")
    member(notes, "ada", steps=None, weight=None, norm=None, drift=None)
    page = client.get("/c/notes/rounds/5/").text
    assert page.count('">–</td>') == 4 and "A dash: its agent does not tell." in page
    assert "The average is" not in page


def test_only_organisers_see_the_losses_that_volunteers_agreed_to_tell(
    client, olga, alice, notes, coordinator
):
    see(coordinator)
    for name, loss in (("ada", 2.0), ("bob", 4.0), ("zoe", None)):
        member(notes, name, own_loss=loss)
    for viewer in (None, alice):
        if viewer:
            client.force_login(viewer)
        for path in ("/c/notes/", "/c/notes/rounds/5/", "/c/notes/rounds/5/?part"):
            assert "Fairness" not in client.get(path).text
    client.force_login(olga)
    page = client.get("/c/notes/rounds/5/").text
    assert "2 volunteers of this round tell" in page
    assert "2.000 to 4.000, 3.000 on average, standard deviation 1.000" in page


def test_refused_offers_are_nobodys_and_unlisted_people_anonymous(client, notes, coordinator):
    see(coordinator)
    mallory = make_session(make_device(make_user("mallory"))[0], notes)
    refused = {"accepted": False, "reason": "its offer was not finite"}
    report(mallory, receipt(5).model_copy(update=refused))
    hidden = make_session(make_device(make_user("hana", is_listed=False))[0], notes)
    member(notes, "", session=hidden)
    page = client.get("/c/notes/rounds/5/?part").text
    assert "mallory" not in page and "hana" not in page and "anonymous" in page
    assert "<html" not in page


def test_a_round_done_anew_shows_who_was_there_the_second_time(client, notes, coordinator):
    member(notes, "first-lady")
    Receipt.objects.update(at="2026-01-01T00:00:00Z")
    see(coordinator)
    member(notes, "second-son")
    page = client.get("/c/notes/rounds/5/").text
    assert "second-son" in page and "first-lady" not in page


def test_a_round_that_is_not_there_and_a_draft_are_404(client, notes, coordinator, olga):
    see(coordinator)
    make_collaboration("secret", state="draft", organiser=olga)
    for path in ("/c/notes/rounds/6/", f"/c/notes/rounds/{10**30}/", "/c/secret/rounds/0/"):
        assert client.get(path).status_code == 404


def test_before_the_first_round_the_live_page_says_what_will_come(client, notes):
    assert "After the first round, this tells who took part" in client.get("/c/notes/").text


def test_the_organisers_form_shows_every_strategys_rule(client, olga):
    client.force_login(olga)
    page = client.get("/console/create/").text
    for words in ("Karimireddy et al. 2020", "Wang et al. 2020", "Diskin et al. 2021"):
        assert words in page
