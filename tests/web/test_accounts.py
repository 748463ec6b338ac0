"""Names, bans, deletion, and mail."""

from __future__ import annotations

import re

import pytest
from allauth.account.models import EmailAddress
from django.contrib.admin.models import CHANGE, LogEntry
from django.core import mail
from django.core.mail import EmailMultiAlternatives, send_mail
from django.db import transaction

from tests.factories import make_device, make_user
from webapp.accounts.models import User
from webapp.accounts.selectors import public_name
from webapp.accounts.services import (
    ban,
    delete_account,
    lift_ban,
    rename,
    set_listed,
    system_user,
)
from webapp.audit.models import Entry
from webapp.core.errors import UserError
from webapp.core.mail import QueuedBackend, deliver
from webapp.core.text import one_line


def test_the_name_of_an_unlisted_person_is_seen_by_them_and_by_organisers(alice, olga):
    bob = make_user("bob")
    assert public_name(alice) == "alice"
    set_listed(alice, is_listed=False)
    seen = [public_name(alice, viewer=viewer) for viewer in (None, bob, alice, olga)]
    assert seen == ["anonymous", "anonymous", "alice", "alice"]
    assert public_name(None) == "anonymous"


def test_a_name_is_one_line_and_nobody_elses(alice):
    make_user("bob")
    with pytest.raises(UserError):
        rename(alice, name="BOB")
    with pytest.raises(UserError):
        rename(alice, name=" \u202e\n ")
    rename(alice, name=" Alice\n\u202eof  Kyoto ")
    assert alice.name == "Alice of Kyoto"


def test_a13_control_and_direction_characters_are_dropped_and_scripts_are_kept():
    assert one_line("a\u202eb\x00c\u2066d", 40) == "abcd"
    assert one_line("ক্ষ\u200d <b>", 40) == "ক্ষ\u200d <b>"


def test_a_ban_needs_a_reason_and_spares_organisers(alice, olga):
    with pytest.raises(UserError):
        ban(alice, by=olga, reason="  ")
    with pytest.raises(UserError):
        ban(olga, by=olga, reason="made-up samples")
    ban(alice, by=olga, reason="made-up samples")
    assert User.objects.get(pk=alice.pk).is_banned
    lift_ban(alice, by=olga)
    assert not User.objects.get(pk=alice.pk).is_banned
    assert [e.actor for e in Entry.objects.all()] == [olga, olga]


def test_a14_a_deleted_account_leaves_neither_name_nor_address_nor_device_name(alice, olga):
    make_device(alice, name="H8-PC")
    rename(alice, name="alice the hidden")
    EmailAddress.objects.create(user=alice, email=alice.email)
    LogEntry.objects.log_actions(olga.pk, [alice], CHANGE)
    delete_account(alice)
    assert list(User.objects.all()) == [olga]
    kept = (Entry, LogEntry, EmailAddress)
    left = " ".join(str(row) for model in kept for row in model.objects.values())
    for private in ("alice", "example.org", "H8-PC"):
        assert private not in left


def test_the_last_administrator_stays(db):
    admin = User.objects.create_superuser("root@example.org", "right horse battery")
    with pytest.raises(UserError):
        delete_account(admin)


def test_the_sites_own_account_is_one_and_cannot_log_in(db, client):
    own = system_user()
    assert system_user() == own
    assert not own.has_usable_password()
    assert not own.is_active


@pytest.mark.django_db(transaction=True)
def test_b09_mail_is_sent_after_commit_and_never_after_a_rollback(settings):
    settings.EMAIL_BACKEND = "webapp.core.mail.QueuedBackend"  # pytest-django puts another one in
    for number in range(20):
        with pytest.raises(RuntimeError), transaction.atomic():
            send_mail(f"undone {number}", "text", None, ["a@example.org"])
            raise RuntimeError
    assert mail.outbox == []
    with transaction.atomic():
        send_mail("done", "text", None, ["a@example.org"])
        assert mail.outbox == []
    assert [message.subject for message in mail.outbox] == ["done"]


def test_b07_one_mail_handed_to_two_workers_is_sent_once(db):
    fields = {"subject": "s", "body": "b", "to": ["a@example.org"], "alternatives": []}
    deliver("key", dict(fields))
    deliver("key", dict(fields))
    assert len(mail.outbox) == 1


@pytest.mark.django_db(transaction=True)
def test_a_queued_mail_arrives_as_it_was_written():
    message = EmailMultiAlternatives("Ünïcode", "plain", "from@example.org", ["a@example.org"])
    message.attach_alternative("<p>rich</p>", "text/html")
    QueuedBackend().send_messages([message])
    sent = mail.outbox[0]
    assert (sent.subject, sent.body, sent.to) == ("Ünïcode", "plain", ["a@example.org"])
    assert sent.alternatives[0][0] == "<p>rich</p>"


def _sign_up(client, address: str, **fields: str) -> User:
    password = "right horse battery"
    form = {"email": address, "password1": password, "password2": password, "name": ""}
    answer = client.post("/accounts/signup/", form | fields)
    assert answer.status_code == 302, answer.content.decode()
    client.logout()
    return User.objects.get(email=address)


def test_an_empty_public_name_at_sign_up_gives_a_neutral_one(db, client):
    people = [_sign_up(client, f"{one}@example.org") for one in ("ada", "bob")]
    assert all(person.name.startswith("volunteer-") for person in people)
    assert people[0].name != people[1].name
    assert "user user" not in mail.outbox[0].body and people[0].name in mail.outbox[0].body
    assert User.objects.create(email="made@example.org").name.startswith("volunteer-")


def test_a_name_chosen_at_sign_up_is_made_one_line(db, client):
    assert _sign_up(client, "ada@example.org", name="Ada\u202e  of  Kyoto").name == "Ada of Kyoto"


def test_who_signs_up_on_the_way_to_a_page_arrives_there_after_the_mail(db, client):
    password = "right horse battery"
    form = {"email": "ada@example.org", "password1": password, "password2": password}
    client.post("/accounts/signup/?next=/c/demo/join/", form | {"next": "/c/demo/join/"})
    link = re.search(r"/accounts/confirm-email/\S+", mail.outbox[0].body).group()
    assert client.post(link).status_code == 302
    login = {"login": "ada@example.org", "password": password}
    assert client.post("/accounts/login/", login).url == "/c/demo/join/"
    client.logout()
    assert client.post("/accounts/login/", login).url == "/me/"


def test_mails_are_signed_by_the_site_not_by_its_address(db, client, settings):
    settings.SITE_NAME = "Potluck of Kyoto"
    _sign_up(client, "ada@example.org")
    told = mail.outbox[0].body.replace("http://testserver/accounts", "")
    assert "Potluck of Kyoto" in told and "Hello from testserver" not in told
    assert mail.outbox[0].subject.startswith("[Potluck]")
