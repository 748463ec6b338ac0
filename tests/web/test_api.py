"""The HTTP API as agents and strangers meet it."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.utils import timezone

from tests.factories import make_collaboration, make_device, make_user
from trainer.grant import Enrolled
from trainer.wire import Machine
from webapp.accounts.services import ban, set_listed
from webapp.api.tables import csv_text
from webapp.collaborations.services import coordinator_device, note_swarm
from webapp.core.checks import reach_of
from webapp.credit.models import HourlyCredit
from webapp.devices.services import make_code, open_session, revoke
from webapp.live.models import Event

API = "/api/v1"
KEY = "ssh-rsa AAAA"


def post(client, path, body, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return client.post(
        f"{API}{path}", json.dumps(body), content_type="application/json", headers=headers
    )


def enrol(client, code):
    return post(client, "/device/enrol", {"code": code, "machine": Machine().model_dump()})


def join(client, slug, token, **changed):
    body = {"wire_version": 1, "agent_version": "1", "peer_key": KEY} | changed
    return post(client, f"/device/collaborations/{slug}/join", body, token)


def test_a_launchers_first_start(client, alice, collaboration):
    code = make_code(alice, collaboration=collaboration, device_name="lab-pc")
    answer = enrol(client, code)
    assert answer.status_code == 200
    enrolled = Enrolled.model_validate_json(answer.content)
    assert (enrolled.name, enrolled.collaboration) == ("lab-pc", "demo")
    again = enrol(client, code)
    assert again.status_code == 410
    assert again.json()["kind"] == "used"
    assert "new launcher" in again.json()["next_step"]


def test_joining_before_the_swarm_is_there_asks_to_wait(client, alice, collaboration, peer_key):
    _, token = make_device(alice)
    answer = join(client, "demo", token, peer_key=peer_key)
    assert answer.status_code == 409
    assert answer["Retry-After"] == "2"
    note_swarm(collaboration, addresses=("/ip4/127.0.0.1/tcp/1/p2p/Qm",))
    answer = join(client, "demo", token, peer_key=peer_key)
    assert answer.status_code == 200
    assert answer.json()["recipe"]["collaboration"] == "demo"


def test_a_device_that_may_not_is_told_why(client, alice, olga, collaboration):
    device, token = make_device(alice)
    assert join(client, "demo", "nonsense").status_code == 401
    assert join(client, "nothing", token).status_code == 404
    assert join(client, "demo", token, wire_version=0).status_code == 426
    ban(alice, by=olga, reason="made-up samples")
    banned = join(client, "demo", token)
    assert (banned.status_code, banned.json()["kind"]) == (403, "banned")
    assert "made-up samples" in banned.json()["error"]
    revoke(device, by=alice, reason="lost")
    revoked = join(client, "demo", token)
    assert (revoked.status_code, revoked.json()["kind"]) == (403, "revoked")


def test_cookies_do_not_stand_in_for_a_device_token(client, alice, collaboration):
    client.force_login(alice)
    assert join(client, "demo", None).status_code == 401


def test_an_ill_formed_request_is_answered_with_words(client, db):
    for body, status in (("{", 400), ("[]", 422), ('{"code": 5}', 422), ("NaN", 422)):
        answer = client.post(f"{API}/device/enrol", body, content_type="application/json")
        assert answer.status_code == status, body
        said = answer.json()
        assert said["error"] and said["next_step"] and said["kind"] == "invalid"


def test_an_unknown_call_and_a_wrong_method_are_told_in_json(client, db):
    unknown = client.get(f"{API}/nothing/here")
    wrong = client.post(f"{API}/collaborations", {}, content_type="application/json")
    seen = [(answer.status_code, answer.json()["kind"]) for answer in (unknown, wrong)]
    assert seen == [(404, "unknown"), (405, "method")]
    assert "/nothing/here" in unknown.json()["error"] and unknown.json()["next_step"]
    assert wrong["Allow"] == "GET" and "Allow" in wrong.json()["next_step"]


def test_a_large_body_is_refused(client, db):
    for size in (20_000, 2_000_000):
        body = json.dumps({"code": "x" * size})
        answer = client.post(f"{API}/device/enrol", body, content_type="application/json")
        assert answer.status_code == 413
        assert answer.json()["kind"] == "too_large" and answer.json()["next_step"]


def test_too_many_attempts_are_told_when_to_come_back(client, db):
    codes = {enrol(client, "x" * 40).status_code for _ in range(60)}
    assert codes == {404}
    answer = enrol(client, "x" * 40)
    assert answer.status_code == 429
    assert 1 <= int(answer["Retry-After"]) <= 60


def test_drafts_are_on_no_public_list(client, olga, collaboration):
    make_collaboration("secret-draft", state="draft")
    client.force_login(olga)
    assert [one["slug"] for one in client.get(f"{API}/collaborations").json()] == ["demo"]
    assert client.get(f"{API}/collaborations/secret-draft").status_code == 404


PUBLIC = [
    "/collaborations",
    "/collaborations/demo",
    "/collaborations/demo/history",
    "/collaborations/demo/history.csv",
    "/collaborations/demo/events",
    "/leaderboard",
    "/leaderboard?period=all&collaboration=demo",
    "/leaderboard?by=rounds",
    "/openapi.json",
]


def test_a14_what_is_hidden_is_on_no_public_answer(client, collaboration):
    hidden = make_user("hidden-hana", is_listed=False)
    device, _ = make_device(hidden, name="H8-PC")
    device.machine = Machine(processor="Zeta 9000").model_dump(mode="json")
    device.save()
    open_session(
        device,
        collaboration=collaboration,
        session_id="0123456789abcdef0123456789abcdef",
        role="peer",
    )
    now = timezone.now()
    Event.objects.create(
        collaboration=collaboration, at=now, what="joined", text="joined", device=device
    )
    HourlyCredit.objects.create(
        collaboration=collaboration, user=hidden, device=device, hour=now, samples=9
    )
    note_swarm(collaboration, addresses=("/ip4/10.1.2.3/tcp/1/p2p/QmSecretPeer",))
    coordinator_device(collaboration)
    private = [
        "hidden-hana",
        "example.org",
        "H8-PC",
        "Zeta 9000",
        str(device.pk),
        device.pk.hex,
        "10.1.2.3",
        "QmSecretPeer",
        "coordinator@",
    ]
    paths = [f"{API}{path}" for path in PUBLIC] + ["/", "/c/", "/c/demo/", "/leaderboard/"]
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        text = answer.content.decode()
        for word in private:
            assert word not in text, f"{word} in {path}"
    set_listed(hidden, is_listed=True)
    assert "hidden-hana" in client.get(f"{API}/leaderboard").content.decode()


NASTY = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)",
    '"}]},{"y":[9',
    "=1+1",
    "@SUM(A1)",
]


@pytest.mark.parametrize("name", NASTY)
def test_a13_a_name_is_only_text_in_json_and_csv(client, collaboration, name):
    user = make_user(name)
    HourlyCredit.objects.create(
        collaboration=collaboration,
        user=user,
        device=make_device(user)[0],
        hour=timezone.now(),
        samples=1,
    )
    answer = client.get(f"{API}/leaderboard")
    assert answer["Content-Type"].startswith("application/json")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer.json()["rows"][0]["name"] == name
    page = client.get("/leaderboard/").content.decode()
    assert "<img src=x" not in page
    assert "<script>alert" not in page


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+cmd", "@SUM(A1)", "\t=1"])
def test_a13_no_cell_of_a_csv_file_is_a_formula(text):
    rows = list(csv.reader(io.StringIO(csv_text(["name", "loss"], [[text, -1.5]]))))
    assert rows[1] == [f"'{text}", "-1.5"]


def test_history_as_csv_has_every_round_and_numbers_as_numbers(client, collaboration):
    for number in (1, 2):
        collaboration.rounds.create(
            round=number,
            outcome="clean",
            members=1,
            samples=8,
            tokens=80,
            loss=2.5,
            reason="=HYPERLINK(1)",
            at=timezone.now(),
        )
    answer = client.get(f"{API}/collaborations/demo/history.csv")
    assert answer["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["round"] for row in rows] == ["1", "2"]
    assert (rows[0]["loss"], rows[0]["reason"]) == ("2.5", "'=HYPERLINK(1)")


@pytest.mark.parametrize(
    ("host", "reach"),
    [
        ("127.0.0.1", "this machine only"),
        ("localhost", "this machine only"),
        ("0.0.0.0", "this machine only"),
        ("::1", "this machine only"),
        ("192.168.1.7", "local network"),
        ("lab-pc", "local network"),
        ("lab-pc.local", "local network"),
        ("8.8.8.8", "public"),
        ("potluck.example.org", "public"),
    ],
)
def test_who_can_reach_an_address(host, reach):
    assert reach_of(host) == reach
