"""What pages do: by POST only, with a CSRF token, by those who may, and with a word about it."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile

import pytest
from django.test import Client

from tests.factories import make_device, make_session, make_user
from webapp.accounts.models import User
from webapp.accounts.services import delete_account, rename
from webapp.audit.models import Entry
from webapp.devices.models import EnrolmentCode


@pytest.fixture
def volunteer(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def organiser(olga):
    client = Client()
    client.force_login(olga)
    return client


@pytest.fixture
def acts(alice, device, collaboration):
    return {
        "settings": "/me/settings/",
        "delete": "/me/delete/",
        "revoke mine": f"/me/devices/{device.pk}/revoke/",
        "pause": "/console/c/demo/pause/",
        "revoke": f"/console/devices/{device.pk}/revoke/",
        "ban": f"/console/people/{alice.pk}/ban/",
        "lift ban": f"/console/people/{alice.pk}/lift-ban/",
        "download": "/c/demo/join/pyz/",
    }


def test_acts_are_posted_never_fetched(organiser, acts):
    answers = {name: organiser.get(path).status_code for name, path in acts.items()}
    assert answers == dict.fromkeys(acts, 405)


def test_acts_need_a_csrf_token(olga, acts):
    client = Client(enforce_csrf_checks=True)
    client.force_login(olga)
    assert {client.post(path).status_code for path in acts.values()} == {403}


def test_volunteers_cannot_act_in_the_console(volunteer, acts, device, collaboration):
    for name in ("pause", "revoke", "ban", "lift ban"):
        assert volunteer.post(acts[name], {"reason": "x"}).status_code == 403
    device.refresh_from_db()
    collaboration.refresh_from_db()
    assert not device.is_revoked and collaboration.state == "open"


def test_a_volunteer_revokes_only_devices_of_their_own(volunteer, device):
    other, _ = make_device(make_user("bob"))
    assert volunteer.post(f"/me/devices/{other.pk}/revoke/").status_code == 404
    page = volunteer.post(f"/me/devices/{device.pk}/revoke/", follow=True).content.decode()
    device.refresh_from_db()
    assert device.is_revoked and "shut out for good" in page


def test_settings_change_name_and_listing(volunteer, alice):
    volunteer.post("/me/settings/", {"name": "Countess"})
    alice.refresh_from_db()
    assert (alice.name, alice.is_listed) == ("Countess", False)


def test_a_taken_name_changes_nothing(volunteer, alice):
    make_user("bob")
    page = volunteer.post("/me/settings/", {"name": "BOB"}, follow=True).content.decode()
    alice.refresh_from_db()
    assert (alice.name, alice.is_listed) == ("alice", True) and "Somebody else" in page


def test_an_account_is_deleted_only_when_its_name_is_typed(volunteer, alice):
    page = volunteer.post("/me/delete/", {"confirmation": "yes"}, follow=True)
    assert "Nothing was deleted" in page.content.decode()
    page = volunteer.post("/me/delete/", {"confirmation": "alice"}, follow=True)
    assert page.content.decode().count("was deleted") == 1
    assert not User.objects.filter(pk=alice.pk).exists()
    assert volunteer.get("/me/").status_code == 302


def test_an_organiser_moves_a_collaboration_and_it_is_audited(organiser, collaboration):
    organiser.post("/console/c/demo/pause/", {"reason": "the server moves"})
    collaboration.refresh_from_db()
    assert (collaboration.state, collaboration.state_reason) == ("paused", "the server moves")
    organiser.post("/console/c/demo/resume/")
    page = organiser.post("/console/c/demo/finish/", {"confirmation": "nope"}, follow=True)
    collaboration.refresh_from_db()
    assert collaboration.state == "open" and "Nothing was changed" in page.content.decode()
    organiser.post("/console/c/demo/finish/", {"confirmation": "demo"})
    collaboration.refresh_from_db()
    assert collaboration.state == "finished"
    page = organiser.get("/console/audit/").content.decode()
    assert "collaboration.pause" in page and "collaboration.finish" in page and "olga" in page


def test_a_move_that_does_not_fit_is_explained(organiser, collaboration):
    page = organiser.post("/console/c/demo/open/", follow=True).content.decode()
    assert "cannot become open" in page
    assert organiser.post("/console/c/demo/explode/").status_code == 404


def test_an_organiser_bans_with_a_reason_and_lifts_it(organiser, alice):
    organiser.post(f"/console/people/{alice.pk}/ban/", {"reason": ""})
    alice.refresh_from_db()
    assert not alice.is_banned
    organiser.post(f"/console/people/{alice.pk}/ban/", {"reason": "made-up samples"})
    alice.refresh_from_db()
    assert alice.ban_reason == "made-up samples"
    organiser.post(f"/console/people/{alice.pk}/lift-ban/")
    alice.refresh_from_db()
    assert not alice.is_banned


def test_an_organiser_revokes_a_device_with_a_reason_and_a_tick(organiser, device, collaboration):
    path, form = f"/console/devices/{device.pk}/revoke/", {"collaboration": "demo"}
    for missing in ({"confirmation": "on", "reason": " "}, {"reason": "stolen"}):
        organiser.post(path, form | missing)
        device.refresh_from_db()
        assert not device.is_revoked
    done = organiser.post(path, form | {"reason": "stolen", "confirmation": "on"})
    device.refresh_from_db()
    assert device.revoked_reason == "stolen" and done.url == "/console/c/demo/"


def test_the_audit_log_tells_the_names_of_the_time_and_forgets_a_deleted_account(
    organiser, olga, alice, device
):
    form = {"reason": "stolen", "confirmation": "on"}
    organiser.post(f"/console/devices/{device.pk}/revoke/", form)
    organiser.post(f"/console/people/{alice.pk}/ban/", {"reason": "made-up samples"})
    rename(alice, name="zoe")
    rename(olga, name="olivia")
    page = organiser.get("/console/audit/").content.decode()
    assert "lab-pc of alice" in page and "olga" in page and "name: zoe" in page
    assert "alice" in Entry.objects.get(action="account.banned").target
    delete_account(alice)
    page = organiser.get("/console/audit/").content.decode()
    assert "a deleted account" in page and "<bdi>the site</bdi>" not in page and "olga" in page
    for private in ("alice", "zoe", "lab-pc"):
        assert private not in page


def test_the_audit_log_is_paginated(organiser):
    Entry.objects.bulk_create(Entry(action=f"act.{n}", subject="x") for n in range(120))
    assert "Page 1 of 3" in organiser.get("/console/audit/").content.decode()


def test_joining_makes_a_code_that_is_shown_once(volunteer, alice, collaboration):
    page = volunteer.post("/c/demo/join/", {"device_name": "lab PC"}).content.decode()
    code = re.search(r"/launcher/([A-Za-z0-9_-]{20,})/potluck\.pyz", page).group(1)
    assert page.count(code) == 1
    assert EnrolmentCode.objects.get().device_name == "lab PC"
    assert code not in volunteer.get("/c/demo/join/").content.decode()
    assert "WSL2" in page


@pytest.mark.parametrize("kind", ["linux", "macos", "pyz"])
def test_each_shape_of_the_launcher_is_downloaded_by_post(volunteer, collaboration, kind):
    page = volunteer.post("/c/demo/join/", {"device_name": "lab PC"}).content.decode()
    ticket = re.search(r'name="ticket" value="([^"]+)"', page).group(1)
    answer = volunteer.post(f"/c/demo/join/{kind}/", {"ticket": ticket})
    assert answer.status_code == 200 and "attachment" in answer["Content-Disposition"]
    content = io.BytesIO(answer.content)
    if kind == "linux":
        with tarfile.open(fileobj=content) as packed:
            assert "potluck/potluck.pyz" in packed.getnames()
    elif kind == "macos":
        assert "potluck/potluck.pyz" in zipfile.ZipFile(content).namelist()
    else:
        assert b"lab PC" in zipfile.ZipFile(content).read("config.json")
    assert EnrolmentCode.objects.count() == 1


def test_a_made_up_download_ticket_is_refused(volunteer, collaboration):
    assert volunteer.post("/c/demo/join/pyz/", {"ticket": "abc:def"}).status_code == 403
    assert volunteer.post("/c/demo/join/windows/", {"ticket": "x"}).status_code == 404


def test_a_banned_person_reads_why_they_cannot_join(client, mallory, collaboration):
    client.force_login(mallory)
    page = client.post("/c/demo/join/", {"device_name": "x"}).content.decode()
    assert "sent made-up samples" in page and not EnrolmentCode.objects.exists()


def test_a_site_only_this_machine_reaches_says_so_and_organisers_read_what_to_set(
    volunteer, organiser, collaboration, settings
):
    settings.SITE_URL = "http://127.0.0.1:8000"
    page = volunteer.get("/c/demo/join/").content.decode()
    assert "this machine only" in page and "ask an organiser" in page and "SITE_URL" not in page
    assert "SITE_URL" in organiser.get("/c/demo/join/").content.decode()


def test_a_reload_of_the_launchers_page_makes_no_second_code(volunteer, collaboration):
    page = volunteer.get("/c/demo/join/").content.decode()
    once = re.search(r'name="once" value="([^"]+)"', page).group(1)
    forms = [{"device_name": f"lab\u202e PC {'x' * 200}", "once": once}] * 2
    pages = [volunteer.post("/c/demo/join/", form).content.decode() for form in forms]
    codes = {re.search(r"/launcher/([A-Za-z0-9_-]{20,})/potluck", page).group(1) for page in pages}
    assert len(codes) == 1
    row = EnrolmentCode.objects.get()
    assert (len(row.device_name), "\u202e" in row.device_name) == (60, False)
    assert "x" * 60 not in pages[0].replace(row.device_name, "") and "\\u202e" not in pages[0]
    other = Client()
    other.force_login(make_user("bob"))
    other.post("/c/demo/join/", forms[0])
    assert EnrolmentCode.objects.count() == 2


def test_my_devices_and_the_second_factor_say_what_they_should(volunteer, device, collaboration):
    make_session(device, collaboration)
    assert "in a session" in volunteer.get("/me/devices/").content.decode()
    assert (
        "recovery codes: each signs you in once"
        in volunteer.get("/accounts/2fa/", follow=True).content.decode()
    )
    done = Client().get("/accounts/password/reset/key/done/").content.decode()
    assert done.count('href="/accounts/login/"') == 2


def test_addresses_in_the_credit_of_a_text_are_links(volunteer, collaboration):
    collaboration.text_credit = "Ada, https://example.org/text <b>"
    collaboration.save()
    page = volunteer.get("/c/demo/").content.decode()
    assert '<a href="https://example.org/text"' in page and "<b>" not in page.split("Ada,")[1][:90]
