"""The signed list of devices whose passports count no more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.at_once import at_once
from tests.factories import make_device, make_user
from trainer.passport import RevocationList, read_revocations
from webapp.accounts.services import ban, delete_account, lift_ban
from webapp.collaborations import passports
from webapp.collaborations.models import Revoked
from webapp.collaborations.services import coordinator_device
from webapp.core.errors import UserError
from webapp.devices.models import DeletedDevice, Device
from webapp.devices.services import forget_deleted_devices, revoke


def listed():
    """The list as a peer reads it: number and devices."""
    found = read_revocations(passports.revocation_list(), authority=passports.authority_public())
    return found.number, set(found.devices)


@pytest.fixture
def holder(device, collaboration, peer_key):
    """A device of Alice's with a passport."""
    passports.issue(device.owner, device, peer_key, collaboration)
    return device


def test_the_list_names_a_revoked_device_under_a_higher_number(alice, holder):
    first, devices = listed()
    assert devices == set()
    assert listed()[0] == first
    revoke(holder, by=alice)
    second, devices = listed()
    assert devices == {holder.pk.hex}
    assert second > first
    assert listed()[0] == second


def test_a_ban_names_all_devices_of_the_person_and_lifting_it_none(
    alice, olga, holder, collaboration, peer_key
):
    second_device, _ = make_device(alice, "laptop")
    passports.issue(alice, second_device, peer_key, collaboration)
    numbers = [listed()[0]]
    ban(alice, by=olga, reason="made-up samples")
    number, devices = listed()
    assert devices == {holder.pk.hex, second_device.pk.hex}
    numbers.append(number)
    lift_ban(alice, by=olga)
    number, devices = listed()
    assert devices == set()
    numbers.append(number)
    assert numbers == sorted(set(numbers))


def test_the_devices_of_a_deleted_account_are_named(alice, holder):
    delete_account(alice)
    assert listed()[1] == {holder.pk.hex}


def test_only_who_holds_a_passport_is_named_and_only_until_it_runs_out(alice, holder):
    revoke(holder, by=alice)
    other, _ = make_device(alice, "never joined")
    revoke(other, by=alice)
    number, devices = listed()
    assert devices == {holder.pk.hex}
    Device.objects.update(passport_expires_at=timezone.now() - timedelta(minutes=2))
    later, devices = listed()
    assert devices == set()
    assert later > number


def test_deleted_devices_are_forgotten_when_their_passports_have_run_out(alice, holder):
    delete_account(alice)
    assert forget_deleted_devices(now=timezone.now()) == 0
    assert forget_deleted_devices(now=timezone.now() + timedelta(hours=3)) == 1
    assert not DeletedDevice.objects.exists()


def test_a_deleted_device_gets_no_passport(alice, device, collaboration, peer_key):
    delete_account(alice)
    with pytest.raises(UserError, match="deleted"):
        passports.issue(alice, device, peer_key, collaboration)


def test_the_number_grows_even_when_the_database_comes_from_a_backup(alice, holder):
    number, _ = listed()
    Revoked.objects.update(number=3)
    revoke(holder, by=alice)
    assert listed()[0] >= number


def test_the_list_is_worth_nothing_when_somebody_has_changed_it(alice, holder):
    revoke(holder, by=alice)
    signed = passports.revocation_list()
    forged = signed.model_copy(
        update={"revocations": signed.revocations.replace(holder.pk.hex, "0" * 32)}
    )
    with pytest.raises(ValueError, match="not signed by the site"):
        read_revocations(forged, authority=passports.authority_public())


@pytest.mark.django_db(transaction=True)
def test_two_coordinators_that_ask_at_once_hear_one_list(alice, holder):
    revoke(holder, by=alice)
    heard = at_once(listed, listed)
    assert {frozenset(devices) for _, devices in heard} == {frozenset({holder.pk.hex})}
    assert listed()[0] == max(number for number, _ in heard)


def ask_api(client, token):
    path = "/api/v1/device/revocations"
    return client.get(path, headers={"Authorization": f"Bearer {token}"})


def test_a_coordinator_reads_the_list_and_nobody_else(client, alice, holder, collaboration):
    _, token = coordinator_device(collaboration)
    revoke(holder, by=alice)
    answer = ask_api(client, token)
    assert answer.status_code == 200
    signed = RevocationList.model_validate_json(answer.content)
    found = read_revocations(signed, authority=passports.authority_public())
    assert found.devices == (holder.pk.hex,)
    _, volunteer = make_device(make_user(), "curious")
    refused = ask_api(client, volunteer)
    assert refused.status_code == 403
    assert refused.json()["kind"] == "forbidden"
    assert ask_api(client, "unknown" * 6).status_code == 401
