"""The registry's page, and who sees and downloads checkpoints, wherever they are offered."""

from __future__ import annotations

import hashlib

import pytest

from tests.factories import make_collaboration, make_device, make_session, make_user
from tests.web.registered import add
from trainer.agent.files import Files
from trainer.grant import Checkpoint as Wanted
from trainer.launcher import web
from webapp.accounts.services import ban
from webapp.artifacts.services import retire
from webapp.audit.models import Entry
from webapp.collaborations.models import Collaboration, Visibility
from webapp.core.jobs import State
from webapp.devices.services import revoke
from webapp.evaluations.models import Evaluation, Task
from webapp.registry.selectors import PAGE_SIZE

PAGE = "/c/demo/checkpoints/"


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


@pytest.fixture
def checkpoint(collaboration, tmp_path):
    return add(collaboration, tmp_path, 20, held_out=3.25)


def url_of(checkpoint) -> str:
    return f"/artifacts/{checkpoint.artifact.sha256}/{checkpoint.artifact.filename}"


def show_to(collaboration, visibility) -> None:
    Collaboration.objects.filter(pk=collaboration.pk).update(visibility=visibility)


def test_before_the_first_one_the_page_says_what_will_come(client, collaboration):
    page = client.get(PAGE).text
    assert f"writes one every {collaboration.recipe.round.checkpoint_every} rounds" in page
    assert "the last 5" in page and "best held-out loss" in page
    assert f'href="{PAGE}"' in client.get("/c/demo/").text


def test_newest_first_page_by_page_with_what_was_deleted(client, collaboration, tmp_path):
    made = [add(collaboration, tmp_path, 10 * n, held_out=2 + n) for n in range(1, 31)]
    retire(collaboration.checkpoints.get(round=290), made[0].created_at)
    page = client.get(PAGE)
    rounds = [row.checkpoint.round for row in page.context["rows"]]
    assert rounds == list(range(300, 50, -10)) and len(rounds) == PAGE_SIZE
    assert url_of(made[-1]) in page.text and "newest" in page.text
    gone = made[28].artifact
    assert gone.sha256 in page.text and f"/artifacts/{gone.sha256}" not in page.text
    assert "deleted" in page.text and "is deleted within a minute" in page.text
    second = client.get(f"{PAGE}?page=2").text
    assert "best held-out loss" in second and url_of(made[0]) in second
    assert "29 are kept" in page.text


WHO = ("visitor", "stranger", "banned", "volunteer", "organiser")
SEEN_BY = {
    Visibility.EVERYBODY: {*WHO},
    Visibility.VOLUNTEERS: {"volunteer", "organiser"},
    Visibility.ORGANISERS: {"organiser"},
}


@pytest.mark.parametrize("visibility", Visibility)
@pytest.mark.parametrize("who", WHO)
def test_page_file_and_evaluations_are_for_whom_the_collaboration_says(
    client, collaboration, checkpoint, visibility, who
):
    show_to(collaboration, visibility)
    task = Task.objects.create(collaboration=collaboration, title="Perplexity of leads")
    known = {"round": 20, "sha256": checkpoint.artifact.sha256, "title": "Leads"}
    Evaluation.objects.create(task=task, checkpoint=checkpoint, state=State.FAILED, **known)
    if who != "visitor":
        user = make_user(who, is_staff=who == "organiser")
        if who in ("banned", "volunteer"):
            make_session(make_device(user)[0], collaboration)
        if who == "banned":
            ban(user, by=make_user(is_staff=True), reason="made-up samples")
        client.force_login(user)
    sees = who in SEEN_BY[visibility]
    expected = 200 if sees else 403
    own, live, table = client.get(PAGE), client.get("/c/demo/"), client.get("/c/demo/evaluations/")
    assert (own.status_code, live.status_code, table.status_code) == (expected, 200, expected)
    for page in (own, live):
        assert (checkpoint.artifact.sha256 in page.text) == sees
    assert (task.title in table.text) == sees
    asked = {"": 200, "Range=bytes=0-3": 206, f'If-None-Match="{checkpoint.artifact.sha256}"': 304}
    for header, given in asked.items():
        headers = dict([header.split("=", 1)]) if header else {}
        answer = client.get(url_of(checkpoint), headers=headers)
        assert answer.status_code == (given if sees else 403)
        assert "public" not in answer.get("Cache-Control", "")
    if not sees:
        assert "see the checkpoints of this collaboration" in own.text
        assert "see the checkpoints of this collaboration" in live.text
        assert "see the checkpoints" in answer.json()["error"]


@pytest.mark.parametrize("visibility", Visibility)
def test_what_programs_read_tells_only_what_everybody_may_know(
    client, collaboration, checkpoint, olga, visibility
):
    show_to(collaboration, visibility)
    client.force_login(olga)  # no answer of the API depends on a cookie
    is_public = visibility == Visibility.EVERYBODY
    told = client.get("/api/v1/collaborations/demo").json()["checkpoint"]
    assert told["round"] == 20 and (told["url"] == url_of(checkpoint)) == is_public
    assert bool(told["sha256"]) == is_public
    answer = client.get("/api/v1/collaborations/demo/checkpoints")
    if is_public:
        (line,) = answer.json()
        assert (line["url"], line["sha256"]) == (url_of(checkpoint), checkpoint.artifact.sha256)
        return
    assert answer.status_code == 403 and "see the checkpoints" in answer.json()["error"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("visibility", [Visibility.VOLUNTEERS, Visibility.ORGANISERS])
def test_a_device_that_may_join_fetches_what_it_needs_and_no_other_does(
    live_server, tmp_path, visibility
):
    collaboration = make_collaboration("demo")
    show_to(collaboration, visibility)
    file = add(collaboration, tmp_path, 20).artifact
    wanted = Wanted(
        round=20, sha256=file.sha256, size_bytes=file.size_bytes, filename=file.filename
    )
    ada, token = make_device(make_user("ada"))

    def fetched(token: str) -> bytes:
        folder = tmp_path / "cache" / hashlib.sha256(token.encode()).hexdigest()
        return Files(live_server.url, folder, token=token).fetch(wanted).read_bytes()

    assert fetched(token) == b"demo 20"
    for other in ("", "x" * 43, token[:-1]):
        with pytest.raises(web.Refusal, match="see the checkpoints"):
            fetched(other)
    revoke(ada, by=ada.owner, reason="sold")
    with pytest.raises(web.Refusal, match="see the checkpoints"):
        Files(live_server.url, tmp_path / "again", token=token).fetch(wanted)


def test_an_organiser_changes_the_rules_and_pins_while_it_runs(
    client, collaboration, checkpoint, olga, alice
):
    rules = {"visibility": "organisers", "keep_last": 3, "keep_every": 100}
    client.force_login(alice)
    assert client.post(PAGE, rules).status_code == 403
    assert client.post(f"/console/checkpoints/{checkpoint.pk}/pin/").status_code == 403
    client.force_login(olga)
    assert "Nothing was saved" in client.post(PAGE, rules | {"keep_last": 0}).text
    for _ in range(2):
        assert client.post(PAGE, rules).status_code == 302
        client.post(f"/console/checkpoints/{checkpoint.pk}/pin/")
    page = client.get(PAGE).text
    assert "pinned" in page and "one in every 100 rounds" in page and "organisers only" in page
    collaboration.refresh_from_db()
    assert (collaboration.keep_last, collaboration.keep_evaluated) == (3, False)
    client.post(f"/console/checkpoints/{checkpoint.pk}/unpin/")
    assert client.post(f"/console/checkpoints/{checkpoint.pk}/eat/").status_code == 404
    actions = Entry.objects.filter(action__startswith="checkpoints.").order_by("pk")
    assert [one.action.split(".")[1] for one in actions] == ["rules", "pinned", "unpinned"]
    client.force_login(alice)
    assert client.get(PAGE).status_code == 403
