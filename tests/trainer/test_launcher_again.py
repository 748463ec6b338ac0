"""A second launcher on a computer that has been a device before."""

from __future__ import annotations

import json

import pytest

from tests.trainer.volunteer import NEW_CODE


@pytest.fixture
def site(launcher_site):
    return launcher_site


@pytest.fixture
def quick(volunteer):
    """A volunteer whose environment is there, enrolled with CODE, with an unsent report."""
    volunteer.use_this_python()
    assert volunteer.start("--yes")[0] == 0
    (device,) = volunteer.device_files()
    spool = device.parent / "demo" / "spool" / "old.jsonl"
    spool.parent.mkdir(parents=True)
    spool.write_text("a report of the old device")
    volunteer.download(NEW_CODE)
    return volunteer


GONE = [
    (403, {"error": "This device was revoked. Revoked by its owner", "kind": "revoked"}),
    (401, {"error": "The site does not know this device token.", "kind": "unknown"}),
]


@pytest.mark.parametrize("refusal", GONE, ids=["revoked", "unknown"])
def test_a_new_launcher_replaces_a_device_that_the_site_takes_no_more(quick, site, refusal):
    site.refused_tokens["t" * 43] = refusal
    code, out = quick.start("--yes")
    assert code == 0, out
    assert refusal[1]["error"] in out
    assert "Enrolled at" in out
    assert site.codes[NEW_CODE] == "used"
    (device,) = quick.home.glob("sites/*/device.json")
    assert json.loads(device.read_text())["token"] == "n" * 43
    assert not list(quick.home.glob("sites/*/demo"))  # the old reports cannot be the new device's
    (report,) = quick.home.glob("former/*/demo/spool/old.jsonl")
    assert report.read_text() == "a report of the old device"
    assert json.loads((report.parents[2] / "device.json").read_text())["token"] == "t" * 43
    site.asked.clear()
    assert quick.start()[0] == 0
    assert site.asked == ["/launcher/manifest.json"]


def test_a_new_launcher_on_an_enrolled_computer_says_that_it_goes_on_as_that_device(quick, site):
    code, out = quick.start()
    assert code == 0, out
    assert 'enrolled already as "lab"' in out
    assert site.codes[NEW_CODE] == "good"
    assert site.second_starts == [NEW_CODE]
    assert list(quick.home.glob("sites/*/demo/spool/old.jsonl"))


def test_a_revoked_device_stays_when_the_new_code_is_refused_too(quick, site):
    site.refused_tokens["t" * 43] = GONE[0]
    site.codes[NEW_CODE] = "expired"
    code, out = quick.start("--yes")
    assert code == 1
    assert "expired on 1 May 2026" in out
    assert list(quick.home.glob("sites/*/demo/spool/old.jsonl"))
