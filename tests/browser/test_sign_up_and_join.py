"""From a visitor to a volunteer whose device is seen, in a real browser."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest
from django.core import mail
from django.utils import timezone
from playwright.sync_api import expect

from tests.browser.wait import until
from tests.factories import make_device
from webapp.accounts.models import User
from webapp.devices.models import EnrolmentCode

pytestmark = pytest.mark.browser
PASSWORD = "right horse battery 9"


def sign_up(site, page, email="ada@example.org"):
    page.goto(f"{site.url}/accounts/signup/")
    page.get_by_label("Email", exact=False).first.fill(email)
    page.locator("input[name=password1]").fill(PASSWORD)
    page.locator("input[name=password2]").fill(PASSWORD)
    page.locator("input[name=name]").fill("ada")
    page.locator("main form button[type=submit]").first.click()
    expect(page.locator("h1")).to_contain_text("Verify")


def test_a_visitor_signs_up_by_mail_and_gets_a_launcher(site, page, collaboration):
    sign_up(site, page)
    link = re.search(r"http://\S+/confirm-email/\S+", mail.outbox[-1].body).group(0)
    page.goto(site.url + "/" + link.split("/", 3)[3])
    page.locator("main form button[type=submit]").first.click()
    if "/login/" in page.url:
        page.locator("input[name=login]").fill("ada@example.org")
        page.locator("input[name=password]").fill(PASSWORD)
        page.locator("main form button[type=submit]").first.click()
    page.goto(f"{site.url}/c/demo/join/")
    page.get_by_label("Device name").fill("lab-pc")
    page.get_by_role("button", name="Make my launcher").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download for Linux").click()
    assert download.value.suggested_filename == "potluck-lab-pc.tar.gz"
    page.get_by_text("A machine without a desktop").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Only the plain launcher").click()
    content = io.BytesIO(Path(download.value.path()).read_bytes())
    assert b"lab-pc" in zipfile.ZipFile(content).read("config.json")
    assert User.objects.get(email="ada@example.org").name == "ada"
    assert EnrolmentCode.objects.count() == 1


def test_the_join_page_sees_the_device_arrive(site, join, log_in, page, alice, collaboration):
    log_in(alice)
    page.goto(f"{site.url}/c/demo/join/")
    page.get_by_label("Device name").fill("lab-pc")
    page.get_by_role("button", name="Make my launcher").click()
    expect(page.locator("[data-arrival]")).to_contain_text("Waiting for lab-pc")
    join("", owner=alice, device="another").progress(0)
    device, token = make_device(alice)
    EnrolmentCode.objects.update(used_at=timezone.now(), device=device)
    expect(page.locator("[data-arrival]")).to_contain_text("lab-pc has started and is enrolled")
    join("", token=token).progress(0)
    expect(page.locator("[data-arrival]")).to_contain_text("We see lab-pc: training")
    page.get_by_role("link", name="Watch it train").click()
    expect(page.locator("[data-part=members]")).to_contain_text("alice")


def test_the_join_page_says_that_the_computer_is_enrolled_already(
    site, join, log_in, page, alice, collaboration
):
    device, token = make_device(alice, "the old one")
    join("", token=token).progress(0)
    log_in(alice)
    page.goto(f"{site.url}/c/demo/join/")
    page.get_by_role("button", name="Make my launcher").click()
    EnrolmentCode.objects.update(device=device)  # as the launcher's second start tells the site
    arrival = page.locator("[data-arrival]")
    expect(arrival).to_contain_text("enrolled already, as the old one, and goes on under that name")
    expect(arrival).to_contain_text("We see the old one: training")
    EnrolmentCode.objects.all().delete()
    expect(arrival).to_contain_text("This launcher was withdrawn")


def test_my_page_shows_my_device_live(site, join, log_in, page, alice, collaboration):
    log_in(alice)
    agent = join("", owner=alice)
    agent.progress(0)
    agent.finish_round(0, loss=4.0, samples=64)
    page.goto(f"{site.url}/me/")
    expect(page.locator("[data-device]").first).to_contain_text("training")
    until(page, "document.querySelector('#per-day').data?.[0].y.at(-1) === 64")


def test_windows_gets_one_honest_sentence(site, log_in, browser, alice, collaboration):
    agent = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/140"
    context = browser.new_context(user_agent=agent)
    context.add_init_script("Object.defineProperty(navigator, 'platform', { value: 'Win32' })")
    context.add_init_script(
        "Object.defineProperty(navigator, 'userAgentData', { value: undefined })"
    )
    log_in(alice, context)
    page = context.new_page()
    page.goto(f"{site.url}/c/demo/join/")
    page.get_by_role("button", name="Make my launcher").click()
    expect(page.get_by_text("WSL2")).to_be_visible()
    expect(page.get_by_role("button", name="Download for Linux")).to_be_hidden()
    context.close()


def test_an_organiser_creates_and_opens_a_collaboration(site, log_in, page, olga):
    from webapp.artifacts.models import Artifact, Kind
    from webapp.collaborations.models import Collaboration

    for place, kind in enumerate((Kind.TOKENIZER, Kind.TEXT)):
        Artifact.objects.create(
            kind=kind,
            sha256=str(place) * 64,
            size_bytes=9,
            filename=f"{kind}.json",
            path="x",
            title=f"Our {kind}",
            vocab_size=4096 if kind == Kind.TOKENIZER else None,
        )
    log_in(olga)
    page.goto(f"{site.url}/console/create/")
    expect(page.locator("[data-of=family]:visible")).to_have_count(1)
    page.get_by_label("Title").fill("A small one")
    page.locator("select[name=texts]").select_option(label="Our text")
    page.get_by_role("button", name="Create the draft").click()
    expect(page.locator("h1")).to_have_text("A small one")
    page.get_by_role("button", name="Open it").click()
    expect(page.locator(".notice.success")).to_contain_text("volunteers may join")
    assert Collaboration.objects.get().state == "open"
