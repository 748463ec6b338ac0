"""Every page: who may see it, what it says when there is nothing, and what it must not show."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.browser.seeds import give_past
from tests.factories import make_collaboration, make_device, make_session, make_user
from webapp.credit.models import HourlyCredit
from webapp.live.models import Event, RoundRecord
from webapp.recipes import ready

PUBLIC = ["/", "/c/", "/c/demo/", "/leaderboard/", "/docs/volunteer/", "/docs/organiser/"]
PRIVATE = ["/me/", "/me/devices/", "/c/demo/join/"]
ORGANISERS = [
    "/console/",
    "/console/create/",
    "/console/audit/",
    "/console/people/",
    "/console/c/demo/",
]


@pytest.mark.parametrize("path", PUBLIC)
def test_anybody_sees_a_public_page(client, collaboration, path):
    page = client.get(path)
    assert page.status_code == 200
    assert b'href="#main"' in page.content


@pytest.mark.parametrize("path", PRIVATE + ORGANISERS)
def test_a_visitor_is_sent_to_log_in(client, collaboration, path):
    assert client.get(path).url == f"/accounts/login/?next={path}"


@pytest.mark.parametrize("path", PUBLIC + PRIVATE)
def test_a_volunteer_sees_public_and_own_pages(client, alice, collaboration, path):
    client.force_login(alice)
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", ORGANISERS)
def test_the_console_is_for_organisers_only(client, alice, olga, collaboration, path):
    client.force_login(alice)
    assert client.get(path).status_code == 403
    client.force_login(olga)
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", PUBLIC + PRIVATE + ORGANISERS)
def test_pages_of_a_site_with_a_past_render(client, olga, collaboration, path):
    give_past(collaboration)
    client.force_login(olga)
    assert client.get(path).status_code == 200


def test_an_empty_site_says_what_will_come(client, db):
    assert "Nothing is training yet" in client.get("/").content.decode()
    assert "is listed here" in client.get("/c/").content.decode()
    assert "The first appears when a round finishes" in client.get("/leaderboard/").content.decode()


def test_a_new_volunteer_reads_what_to_do_first(client, alice):
    client.force_login(alice)
    assert "No device yet" in client.get("/me/").content.decode()
    assert "No device yet" in client.get("/me/devices/").content.decode()


def test_a_draft_exists_for_organisers_only(client, alice, olga):
    make_collaboration("secret-draft", state="draft")
    client.force_login(alice)
    assert client.get("/c/secret-draft/").status_code == 404
    assert b"secret-draft" not in client.get("/c/").content
    client.force_login(olga)
    assert client.get("/c/secret-draft/").status_code == 200


def test_the_state_is_said_with_its_reason(client, collaboration):
    collaboration.state, collaboration.state_reason = "paused", "we move the server"
    collaboration.save()
    page = client.get("/c/demo/").content.decode()
    assert "Paused" in page and "we move the server" in page


def test_the_page_credits_the_text(client, collaboration):
    give_past(collaboration)
    assert "Wikipedia lead paragraphs, CC BY-SA 4.0" in client.get("/c/demo/").content.decode()
    assert "Wikipedia lead paragraphs, CC BY-SA 4.0" in client.get("/").content.decode()


def test_the_policy_for_scripts_is_strict(client, collaboration):
    policy = client.get("/c/demo/")["Content-Security-Policy"]
    script = next(part for part in policy.split(";") if part.strip().startswith("script-src"))
    assert "'unsafe-eval'" not in policy and "'unsafe-inline'" not in script


@pytest.mark.parametrize("name", ready.names())
def test_every_recipe_has_a_page_among_the_guides_and_links_there_lead_on(client, db, name):
    page = client.get(f"/docs/{name}/").content.decode()
    assert f'<h1 id="recipe-{name}">Recipe {name}</h1>' in page
    guide = client.get("/docs/organiser/").content.decode()
    assert f'href="/docs/{name}/"' in guide
    assert ".md" not in page


def test_unknown_pages_and_guides_are_404(client, db):
    assert client.get("/nothing/").status_code == 404
    assert client.get("/docs/nothing/").status_code == 404
    assert client.get("/c/nothing/").status_code == 404


def test_the_leaderboard_marks_the_own_row_and_keeps_to_its_filter(client, alice, collaboration):
    give_past(collaboration)
    HourlyCredit.objects.create(
        collaboration=collaboration, user=alice, hour=timezone.now(), samples=5, tokens=50
    )
    other = make_collaboration("other")
    client.force_login(alice)
    page = client.get("/leaderboard/?period=24h").content.decode()
    assert page.count('class="own"') == 1 and "alice" in page
    elsewhere = client.get(f"/leaderboard/?collaboration={other.slug}").content.decode()
    assert "No credit in this time" in elsewhere
    assert client.get("/leaderboard/?period=nonsense&page=x").status_code == 200


def test_the_leaderboard_goes_by_rounds_and_keeps_to_it_in_its_links(client, collaboration):
    for name, samples, rounds in (("fast", 900, 2), ("steady", 9, 30)):
        HourlyCredit.objects.create(
            collaboration=collaboration,
            user=make_user(name),
            hour=timezone.now(),
            samples=samples,
            rounds=rounds,
        )
    page = client.get("/leaderboard/?by=rounds").content.decode()
    assert page.index("steady") < page.index("fast")
    assert "?period=24h&amp;by=rounds" in page and 'name="by" value="rounds"' in page
    plain = client.get("/leaderboard/?by=nonsense").content.decode()
    assert plain.index("fast") < plain.index("steady")


def test_the_leaderboard_goes_over_several_pages(client, collaboration):
    for _ in range(30):
        HourlyCredit.objects.create(
            collaboration=collaboration, user=make_user(), hour=timezone.now(), samples=5
        )
    assert "Page 1 of 2" in client.get("/leaderboard/").content.decode()
    assert "Page 2 of 2" in client.get("/leaderboard/?page=2").content.decode()


def test_sign_up_and_log_in_have_our_frame_and_no_social_button_without_keys(client, db):
    for name in ("account_login", "account_signup", "account_reset_password"):
        page = client.get(reverse(name)).content.decode()
        assert 'href="#main"' in page and "GitHub" not in page and "Google" not in page


ATTACKS = {
    "name": "<img src=x onerror=alert(1)>",
    "device": '"}]},{"y":[9',
    "title": "</script><script>alert(2)</script>",
    "reason": '" onmouseover="alert(3)',
}


def test_a13_hostile_text_is_shown_literally_on_every_page(client, olga):
    collaboration = make_collaboration("demo", state="paused", organiser=olga)
    collaboration.title = collaboration.summary = collaboration.text_credit = ATTACKS["title"]
    collaboration.state_reason = ATTACKS["reason"]
    collaboration.save()
    user = make_user("")
    user.name = ATTACKS["name"]
    user.ban_reason = ATTACKS["reason"]
    user.save()
    device, _ = make_device(user, ATTACKS["device"])
    make_session(device, collaboration, ended_at=timezone.now(), end_reason=ATTACKS["title"])
    now = timezone.now()
    HourlyCredit.objects.create(
        collaboration=collaboration, user=user, device=device, hour=now, samples=5
    )
    Event.objects.create(
        collaboration=collaboration, at=now, what="left", text=ATTACKS["title"], device=device
    )
    RoundRecord.objects.create(
        collaboration=collaboration,
        round=1,
        outcome="clean",
        members=1,
        samples=1,
        tokens=1,
        loss=1.0,
        reason=ATTACKS["title"],
        at=now,
    )
    for person in (olga, user):
        client.force_login(person)
        for path in PUBLIC + PRIVATE + (ORGANISERS if person == olga else []):
            page = client.get(path).content.decode()
            for attack in (ATTACKS["name"], ATTACKS["title"], ATTACKS["reason"]):
                assert attack not in page, path
    assert "&lt;img src=x onerror=alert(1)&gt;" in client.get("/leaderboard/").content.decode()


def test_a14_a_hidden_user_is_on_no_anonymous_surface(client, collaboration):
    hidden = make_user("H8-user", is_listed=False)
    device, _ = make_device(hidden, "H8-PC")
    make_session(device, collaboration)
    now = timezone.now()
    HourlyCredit.objects.create(
        collaboration=collaboration, user=hidden, device=device, hour=now, samples=5
    )
    Event.objects.create(
        collaboration=collaboration, at=now, what="joined", text="joined", device=device
    )
    api = ["", "/events", "/history", "/history.csv"]
    paths = PUBLIC + [f"/api/v1/collaborations/demo{end}" for end in api] + ["/api/v1/leaderboard"]
    for path in paths:
        page = client.get(path).content.decode()
        assert "H8-user" not in page and "H8-PC" not in page and "H8-user@" not in page, path
