"""The people of a fresh site: its first organiser, and the volunteer that is this machine."""

from __future__ import annotations

import json

import pytest
from django.conf import settings as site_settings
from django.contrib.auth import authenticate

from tests.factories import make_collaboration
from trainer.launcher.place import store_device
from webapp.accounts.models import User
from webapp.devices.models import Device, EnrolmentCode
from webapp.ops import organiser, volunteer


@pytest.fixture(autouse=True)
def data(tmp_path, settings):
    settings.DATA_DIR = tmp_path
    return tmp_path


def enrol(number, collaboration):
    """As the launcher does it, at both ends."""
    name = "this machine" if number == 1 else f"this machine, {number}"
    owner = User.objects.get(email=volunteer.EMAIL)
    Device.objects.create(owner=owner, name=name, token_hash=f"{number}")
    known = {"token": "t" * 40, "collaboration": collaboration.slug}
    store_device(volunteer.home(number), site_settings.SITE_URL, known)


def test_the_first_organiser_can_log_in_and_is_made_once(db):
    made = organiser.make_first()
    assert authenticate(email=made.email, password=made.password).is_organiser
    assert made.password in str(made)
    assert organiser.make_first() is None
    assert organiser.first().email == made.email


def test_an_existing_organiser_is_left_alone(olga):
    assert organiser.make_first() is None
    assert User.objects.filter(is_staff=True).count() == 1


def test_the_demo_volunteer_gets_a_launcher_with_a_code_and_only_one(collaboration):
    launcher = volunteer.prepare(collaboration)
    assert launcher.stat().st_mode & 0o777 == 0o600
    assert EnrolmentCode.objects.count() == 1
    user = User.objects.get(email=volunteer.EMAIL)
    assert user.name == "demo volunteer"
    assert not user.has_usable_password()
    enrol(1, collaboration)
    assert volunteer.prepare(collaboration) == launcher
    assert EnrolmentCode.objects.count() == 1


def test_several_devices_of_this_machine_have_names_and_folders_of_their_own(collaboration):
    launchers = [volunteer.prepare(collaboration, number) for number in (1, 2, 3)]
    assert [path.parent.name for path in launchers] == ["volunteer", "volunteer-2", "volunteer-3"]
    names = set(EnrolmentCode.objects.values_list("device_name", flat=True))
    assert names == {"this machine", "this machine, 2", "this machine, 3"}


def test_a_device_of_another_collaboration_is_enrolled_anew(collaboration):
    volunteer.prepare(collaboration)
    enrol(1, collaboration)
    volunteer.prepare(make_collaboration("other"))
    assert EnrolmentCode.objects.count() == 2
    folder = volunteer.home()
    assert [json.loads(path.read_text()) for path in folder.rglob("device.json")] == []
