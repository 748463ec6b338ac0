"""The admin shows data and no secret; production settings pass Django's own checks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib import admin
from django.urls import reverse
from django.utils import timezone

from tests.factories import make_device, make_session
from webapp.accounts.models import User
from webapp.audit.models import Entry
from webapp.credit.models import HourlyCredit
from webapp.devices.models import EnrolmentCode
from webapp.devices.services import make_code

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = [model for model in admin.site._registry if model.__module__.startswith("webapp.")]


@pytest.fixture
def root(client, db):
    user = User.objects.create_superuser("root@example.org", "right horse battery", name="root")
    client.force_login(user)
    return user


@pytest.fixture
def rows(alice, collaboration):
    device, token = make_device(alice)
    make_session(device, collaboration)
    code = make_code(alice, collaboration=collaboration, device_name="lab-pc")
    HourlyCredit.objects.create(
        collaboration=collaboration, user=alice, device=device, hour=timezone.now()
    )
    return {
        "device": device,
        "hashes": [device.token_hash, EnrolmentCode.objects.get().code_hash],
        "clear": [token, code],
    }


def pages(model):
    info = model._meta.app_label, model._meta.model_name
    yield reverse("admin:{}_{}_changelist".format(*info)) + "?q=a"
    for row in model._default_manager.all()[:1]:
        yield reverse("admin:{}_{}_change".format(*info), args=[row.pk])


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_every_admin_page_opens_and_shows_no_secret(client, root, rows, model):
    for page in pages(model):
        answer = client.get(page)
        assert answer.status_code == 200, page
        text = answer.content.decode()
        for secret in rows["hashes"] + rows["clear"]:
            assert secret not in text


def test_every_model_of_ours_is_in_the_admin():
    names = {model.__name__ for model in OURS}
    assert {"User", "Entry", "Device", "Session", "Collaboration", "Receipt"} <= names


def test_nobody_edits_the_audit_log(client, root, rows):
    entry = Entry.objects.first()
    for action in ("change", "delete"):
        url = reverse(f"admin:audit_entry_{action}", args=[entry.pk])
        assert client.post(url, {"action": "forged", "post": "yes"}).status_code == 403
    assert client.get(reverse("admin:audit_entry_add")).status_code == 403
    assert Entry.objects.get(pk=entry.pk).action == entry.action


def test_the_admin_is_for_staff_through_the_sites_own_login(client, alice):
    client.force_login(alice)
    assert client.get("/admin/").status_code in (302, 403)
    client.logout()
    answer = client.get("/admin/login/?next=/admin/")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


def test_the_site_answers_a_ping(client):
    answer = client.get("/ping")
    assert (answer.status_code, answer.content) == (200, b"ok")


PRODUCTION = {
    "PRODUCTION": "true",
    "SECRET_KEY": "k7v" * 20 + "-random-enough-for-a-test",
    "SITE_URL": "https://potluck.example.org",
    "SWARM_HOST": "potluck.example.org",
}


def check_deploy(tmp_path, **environment):
    inherited = {k: v for k, v in os.environ.items() if k != "DJANGO_ALLOW_ASYNC_UNSAFE"}
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env=inherited
        | {"DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "webapp.settings"}
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_production_settings_pass_the_checks_for_deployment(tmp_path):
    done = check_deploy(tmp_path, **PRODUCTION)
    assert done.returncode == 0, done.stderr


def test_production_without_tls_or_secret_is_refused(tmp_path):
    plain = check_deploy(tmp_path, **PRODUCTION | {"SITE_URL": "http://potluck.example.org"})
    assert plain.returncode != 0
    assert "passwords would travel in clear" in plain.stderr
    no_secret = check_deploy(tmp_path, **PRODUCTION | {"SECRET_KEY": ""})
    assert "PRODUCTION=true needs SECRET_KEY" in no_secret.stderr
