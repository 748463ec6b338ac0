"""A launcher as its owner sees it: made once, started or withdrawn, and where it ended up."""

from __future__ import annotations

import io
import json
import re
import zipfile
from datetime import timedelta

import pytest
from django.core import signing
from django.test import Client
from django.utils import timezone

from tests.at_once import at_once
from tests.factories import make_collaboration, make_device, make_user
from tests.web.test_device_calls import ask_again
from trainer.recipe import Text
from trainer.wire import Machine
from webapp.audit.models import Entry
from webapp.core.errors import UserError
from webapp.devices import selectors, services
from webapp.devices.models import EnrolmentCode


@pytest.fixture
def volunteer(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def code(alice, collaboration):
    return services.make_code(alice, collaboration=collaboration, device_name="lab-pc")


def arrival(client):
    return client.get(f"/me/launchers/{EnrolmentCode.objects.get().pk}/")


def test_where_volunteers_texts_are_trained_on_the_page_and_the_launcher_say_so(volunteer):
    make_collaboration("notes", texts=(Text(kind="private"),))
    page = volunteer.post("/c/notes/join/", {"device_name": "pc", "once": "o"})
    assert "This page never sees your texts" in page.text
    config = signing.loads(page.context["ticket"], salt="launcher")
    assert config["own_texts"] is True
    code = config["code"]
    with zipfile.ZipFile(io.BytesIO(volunteer.get(f"/launcher/{code}/potluck.pyz").content)) as pyz:
        assert json.loads(pyz.read("config.json")) == config
    shown = volunteer.get("/c/notes/").text
    assert "stay on their computers" in shown and "The coordinator has no text" in shown


def test_where_the_site_has_the_texts_nobody_is_asked_for_theirs(volunteer, collaboration):
    page = volunteer.post("/c/demo/join/", {"device_name": "pc", "once": "o"})
    assert "texts of your own" not in page.text
    assert signing.loads(page.context["ticket"], salt="launcher")["own_texts"] is False


@pytest.mark.django_db(transaction=True)
def test_the_button_pressed_twice_at_once_makes_one_code(alice, collaboration):
    made = {"collaboration": collaboration, "device_name": "pc", "once": "o" * 20}
    codes = at_once(*[lambda: services.make_code(alice, **made)] * 4)
    assert len(codes) == 4 and len(set(codes)) == 1
    assert EnrolmentCode.objects.count() == Entry.objects.filter(action="code.made").count() == 1


def test_the_page_tells_whether_the_model_fits_ones_devices(volunteer, alice, collaboration):
    for name, machine in (
        ("tower", {"memory_bytes": 32 * 10**9, "accelerator": "CPU"}),
        ("pocket", {"memory_bytes": 10**8, "accelerator": "CPU"}),
        ("silent", {}),
    ):
        device, _ = make_device(alice, name)
        device.machine = machine
        device.save()
    make_device(make_user("bob"), "somebody else's")
    page = volunteer.get("/c/demo/join/").content.decode()
    assert "A computer needs about" in page and "a round." in page
    assert "<bdi>tower</bdi> fits: needs" in page
    assert "<bdi>pocket</bdi> does not fit, because it needs" in page
    assert "<bdi>silent</bdi>" not in page and "somebody else" not in page


def test_unused_launchers_are_limited_shown_and_withdrawn(volunteer, collaboration, monkeypatch):
    monkeypatch.setattr(services, "MAX_UNUSED_CODES", 2)
    forms = [{"device_name": f"pc {number}", "once": f"once-{number}"} for number in range(3)]
    for form in (*forms[:2], forms[1]):  # a reload at the limit is no new launcher
        assert "Download and start it" in volunteer.post("/c/demo/join/", form).content.decode()
    page = volunteer.post("/c/demo/join/", forms[2]).content.decode()
    assert "2 launchers that were never started" in page and "withdraw some on My devices" in page
    page = volunteer.get("/me/devices/").content.decode()
    assert "Launchers not started yet" in page and "pc 0" in page and "Demo, made" in page
    (path,) = re.findall(r'action="(/me/launchers/\d+/withdraw/)"', page.split("pc 0")[1])[:1]
    page = volunteer.post(path, follow=True).content.decode()
    assert "The launcher for pc 0 was withdrawn" in page
    assert [row.device_name for row in EnrolmentCode.objects.all()] == ["pc 1"]
    assert Entry.objects.get(action="code.withdrawn").target == "launcher for pc 0 of alice"
    assert "Download and start it" in volunteer.post("/c/demo/join/", forms[2]).content.decode()


def test_a_launcher_is_shown_and_withdrawn_by_its_owner_only(client, code, olga):
    row = EnrolmentCode.objects.get()
    path = f"/me/launchers/{row.pk}/withdraw/"
    assert client.post(path).url.startswith("/accounts/login/")
    assert arrival(client).url.startswith("/accounts/login/")
    for person in (make_user("eve"), olga):  # organisers revoke devices; launchers are private
        client.force_login(person)
        assert client.post(path).status_code == arrival(client).status_code == 404
        assert "lab-pc" not in client.get("/me/devices/").content.decode()
        with pytest.raises(UserError) as refused:
            services.withdraw_code(row, by=person)
        assert refused.value.kind == "forbidden"
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(row.owner)
    assert strict.get(path).status_code == 405 and strict.post(path).status_code == 403
    assert EnrolmentCode.objects.count() == 1


def test_a_withdrawn_launcher_is_refused_in_words(alice, code):
    row = EnrolmentCode.objects.get()
    services.withdraw_code(row, by=alice)
    services.withdraw_code(row, by=alice)  # twice is no error
    with pytest.raises(UserError, match="it was withdrawn") as refused:
        services.enrol(code=code, machine=Machine())
    assert refused.value.kind == "unknown"


def test_a_launcher_that_was_started_is_not_withdrawn(volunteer, alice, code):
    row = EnrolmentCode.objects.get()
    services.enrol(code=code, machine=Machine())
    page = volunteer.post(f"/me/launchers/{row.pk}/withdraw/", follow=True).content.decode()
    assert "was started meanwhile" in page and "Revoke the device instead" in page
    assert EnrolmentCode.objects.get().used_at is not None


def test_the_page_of_a_launcher_learns_which_device_it_made(volunteer, code):
    assert arrival(volunteer).json() == {"state": "waiting"}
    device, _ = services.enrol(code=code, machine=Machine())
    said = {"state": "enrolled", "device": str(device.pk), "name": "lab-pc"}
    assert arrival(volunteer).json() == said


def test_a_second_launcher_on_an_enrolled_computer_is_told_to_its_page(volunteer, alice, code):
    device, token = make_device(alice, "the old one")
    assert ask_again(volunteer, token, code).status_code == 200
    said = {"state": "again", "device": str(device.pk), "name": "the old one"}
    assert arrival(volunteer).json() == said
    assert list(selectors.unused_codes(alice)) == [EnrolmentCode.objects.get()]
    made, _ = services.enrol(code=code, machine=Machine())  # with another --home it is still good
    assert arrival(volunteer).json()["device"] == str(made.pk)
    ask_again(volunteer, token, code)
    assert arrival(volunteer).json()["state"] == "enrolled"


def test_a_computer_of_another_account_is_told_without_its_name(volunteer, code):
    _, token = make_device(make_user("eve"), "eve's own")
    ask_again(volunteer, token, code)
    assert arrival(volunteer).json() == {"state": "elsewhere"}


def test_an_expired_and_a_withdrawn_launcher_are_told_apart(volunteer, alice, code):
    EnrolmentCode.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert arrival(volunteer).json() == {"state": "expired"}
    assert "Launchers not started yet" not in volunteer.get("/me/devices/").content.decode()
    row = EnrolmentCode.objects.get()
    services.withdraw_code(row, by=alice)
    assert volunteer.get(f"/me/launchers/{row.pk}/").status_code == 404
