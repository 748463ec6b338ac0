"""Codes, devices and sessions."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.utils import timezone

from tests.at_once import at_once
from tests.factories import make_collaboration, make_device, make_session, make_user
from trainer.wire import LeaveCause, Machine, Role
from webapp.accounts.services import delete_account
from webapp.audit.models import Entry
from webapp.collaborations.services import coordinator_device
from webapp.core.errors import UserError
from webapp.devices import selectors, services
from webapp.devices.models import Device, EnrolmentCode, Session


def start(device, collaboration, session_id=None, role=Role.PEER):
    return services.open_session(
        device, collaboration=collaboration, session_id=session_id or uuid.uuid4(), role=role
    )


def test_a_code_is_exchanged_for_a_device_once(alice, collaboration):
    code = services.make_code(alice, collaboration=collaboration, device_name="lab-pc")
    device, token = services.enrol(code=code, machine=Machine(num_cores=4))
    assert selectors.device_by_token(token) == device
    assert device.owner == alice
    assert device.name == "lab-pc"
    assert device.machine["num_cores"] == 4
    with pytest.raises(UserError) as refused:
        services.enrol(code=code, machine=Machine())
    assert refused.value.kind == "used"
    assert "Join page" in refused.value.next_step
    assert Device.objects.count() == 1


def test_code_and_token_are_kept_only_as_hashes(alice, collaboration):
    code = services.make_code(alice, collaboration=collaboration, device_name="lab-pc")
    _, token = services.enrol(code=code, machine=Machine())
    for model in (EnrolmentCode, Device, Entry):
        for row in model.objects.values():
            assert code not in str(row)
            assert token not in str(row)


def test_an_expired_code_is_refused_with_its_date_for_a_week_and_then_forgotten(
    alice, collaboration
):
    code = services.make_code(alice, collaboration=collaboration, device_name="lab-pc")
    EnrolmentCode.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    with pytest.raises(UserError) as refused:
        services.enrol(code=code, machine=Machine())
    assert refused.value.kind == "expired"
    assert services.delete_expired_codes(now=timezone.now()) == 0
    assert services.delete_expired_codes(now=timezone.now() + timedelta(days=8)) == 1


def test_an_unknown_code_and_that_of_a_banned_owner_are_refused(alice, collaboration):
    with pytest.raises(UserError) as refused:
        services.enrol(code="x" * 40, machine=Machine())
    assert refused.value.kind == "unknown"
    code = services.make_code(alice, collaboration=collaboration, device_name="lab-pc")
    alice.ban_reason = "sent made-up samples"
    alice.save()
    with pytest.raises(UserError, match="made-up samples"):
        services.enrol(code=code, machine=Machine())


@pytest.mark.django_db(transaction=True)
def test_a_code_used_by_two_machines_at_once_makes_one_device(alice, collaboration):
    code = services.make_code(alice, collaboration=collaboration, device_name="lab-pc")

    def enrol():
        try:
            services.enrol(code=code, machine=Machine())
        except UserError as error:
            return error.kind
        return "enrolled"

    assert sorted(at_once(*[enrol] * 4)) == ["enrolled", "used", "used", "used"]
    assert Device.objects.count() == 1


def test_a01_a_device_that_starts_again_replaces_its_own_session_at_once(device, collaboration):
    first = start(device, collaboration)
    second = start(device, collaboration)
    first.refresh_from_db()
    assert (first.end_cause, second.ended_at) == (LeaveCause.REPLACED, None)
    assert Session.objects.filter(ended_at__isnull=True).count() == 1


def test_a01_two_devices_of_the_same_name_are_two(alice, device, collaboration):
    other, _ = make_device(alice, name=device.name)
    start(device, collaboration)
    start(other, collaboration)
    assert Session.objects.filter(ended_at__isnull=True).count() == 2


def test_a_session_given_up_as_lost_opens_again_under_its_own_number(device, collaboration):
    session = start(device, collaboration)
    services.close_session(session, cause=LeaveCause.LOST)
    again = start(device, collaboration, session.pk)
    assert (again.pk, again.ended_at, again.end_cause) == (session.pk, None, "")
    assert again.started_at == session.started_at


def test_a_replaced_session_does_not_push_out_its_successor(device, collaboration):
    first = start(device, collaboration)
    second = start(device, collaboration)
    late = start(device, collaboration, first.pk)
    second.refresh_from_db()
    assert late.ended_at is not None
    assert second.ended_at is None


def test_nobody_opens_the_session_of_another_device(alice, device, collaboration):
    session = start(device, collaboration)
    thief, _ = make_device(make_user("eve"))
    with pytest.raises(UserError):
        start(thief, collaboration, session.pk)


def test_only_the_sites_own_device_coordinates(device, collaboration):
    with pytest.raises(UserError):
        start(device, collaboration, role=Role.COORDINATOR)
    own, token = coordinator_device(collaboration)
    assert start(own, collaboration, role=Role.COORDINATOR).role == "coordinator"
    same, fresh = coordinator_device(collaboration)
    assert same == own
    assert selectors.device_by_token(token) is None
    assert selectors.device_by_token(fresh) == own


def test_a_session_without_a_sign_of_life_is_lost_after_its_lease(device, collaboration):
    now = timezone.now()
    silent = make_session(device, collaboration, last_seen_at=now - timedelta(seconds=61))
    other = make_session(device, make_collaboration(), last_seen_at=now - timedelta(seconds=61))
    services.touch_sessions([other.pk], now)
    assert services.close_dead_sessions(now=now) == [silent]
    silent.refresh_from_db()
    assert silent.end_cause == LeaveCause.LOST
    assert silent.ended_at == silent.last_seen_at
    assert services.close_dead_sessions(now=now) == []


def test_a_session_ends_once(device, collaboration):
    session = start(device, collaboration)
    assert services.close_session(session, cause=LeaveCause.STOPPED, reason="Ctrl-C")
    assert not services.close_session(session, cause=LeaveCause.LOST)
    assert session.end_cause == LeaveCause.STOPPED


def test_a_volunteer_neither_reads_nor_revokes_the_device_of_another(alice, olga, device):
    eve = make_user("eve")
    with pytest.raises(ObjectDoesNotExist):
        selectors.device_for(eve, device.pk)
    with pytest.raises(UserError):
        services.revoke(device, by=eve)
    device.refresh_from_db()
    assert not device.is_revoked
    assert selectors.device_for(alice, device.pk) == device
    services.revoke(selectors.device_for(olga, device.pk), by=olga, reason="lost laptop")
    device.refresh_from_db()
    assert device.revoked_reason == "lost laptop"
    assert Entry.objects.get(action="device.revoked").actor == olga


def test_my_devices_and_sessions_are_mine_alone(alice, device, collaboration):
    start(device, collaboration)
    start(make_device(make_user("eve"))[0], collaboration)
    assert [d.num_open_sessions for d in selectors.my_devices(alice)] == [1]
    assert [s.device for s in selectors.my_sessions(alice)] == [device]


def test_deleting_the_account_takes_the_tokens_and_keeps_the_sessions(alice, collaboration):
    device, token = make_device(alice)
    session = start(device, collaboration)
    delete_account(alice)
    session.refresh_from_db()
    assert session.device is None
    assert selectors.device_by_token(token) is None
