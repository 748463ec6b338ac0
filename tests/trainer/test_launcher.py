"""The launcher as a person starts it: a real .pyz, a real site, a real private environment."""

from __future__ import annotations

import ensurepip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.launcher_site import LauncherSite
from tests.trainer.waiting import wait_for
from webapp.launcher.builder import personal_pyz

CODE = "tested-code-tested-code-1"
NEW_CODE = "new-code-new-code-new-code"


@pytest.fixture
def site():
    (pip,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    site = LauncherSite(pip.read_bytes(), pip.name)
    site.codes = {CODE: "good", NEW_CODE: "good"}
    site.start()
    yield site
    site.stop()


class Volunteer:
    def __init__(self, folder: Path, site: LauncherSite) -> None:
        self.folder, self.home = folder, folder / "home"
        folder.mkdir(parents=True, exist_ok=True)
        self.launcher = folder / "potluck.pyz"
        self.site = site
        self.download(CODE)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C",
            "POTLUCK_HOME": str(self.home),
            "PIP_INDEX_URL": f"{site.url}/simple/",
            "PIP_TRUSTED_HOST": "127.0.0.1",
            "PYTHONPATH": "/somewhere/else",
            "NO_PROXY": "127.0.0.1",
        }

    def download(self, code: str) -> None:
        """A launcher of the Join page."""
        config = {"site": self.site.url, "code": code, "collaboration": "demo"}
        self.launcher.write_bytes(personal_pyz(config))

    def popen(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.launcher), *words],
            cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
        )  # fmt: skip

    def start(self, *words: str) -> tuple[int, str]:
        process = self.popen(*words)
        out, _ = process.communicate(timeout=120)
        return process.returncode, out

    def device_files(self) -> list[Path]:
        return list(self.home.rglob("device.json"))


@pytest.fixture
def volunteer(tmp_path, site):
    return Volunteer(tmp_path / "me", site)


def test_a17_it_installs_and_starts_in_a_folder_with_bengali_blanks_and_quotes(tmp_path, site):
    volunteer = Volunteer(tmp_path / "আমার ফোল্ডার (1)" / "it's & x", site)
    code, out = volunteer.start("--yes", "--plain", "--threads", "1")
    assert code == 0, out
    agent = json.loads(out.split("agent: ")[1].splitlines()[0])
    assert agent == [
        "run", "--site", site.url, "--home", str(volunteer.home), "--collaboration", "demo",
        "--plain", "--yes", "--threads", "1",
    ]  # fmt: skip
    assert str(volunteer.home / "envs") in out.split("tiny: ")[1]
    (file,) = volunteer.device_files()
    assert file.stat().st_mode & 0o777 == 0o600
    for said in ("private Python environment", "all processor cores but one",
                 "gradients", "Your files are not read"):  # fmt: skip
        assert said in out


def test_a_second_start_needs_neither_code_nor_question_nor_installation(volunteer, site):
    assert volunteer.start("--yes")[0] == 0
    site.asked.clear()
    code, out = volunteer.start()
    assert code == 0
    assert "agent:" in out
    assert "Making" not in out
    assert site.asked == ["/launcher/manifest.json"]


def test_a_second_start_works_while_the_site_is_down(volunteer, site):
    assert volunteer.start("--yes")[0] == 0
    site.stop()
    code, out = volunteer.start()
    assert code == 0
    assert "does not answer; starting what is installed" in out
    assert "agent:" in out
    site.start()


@pytest.mark.parametrize(
    ("state", "words"), [("used", "already used"), ("expired", "expired on 1 May 2026")]
)
def test_a_code_used_twice_or_too_late_is_refused_with_what_to_do(volunteer, site, state, words):
    site.codes[CODE] = state
    code, out = volunteer.start("--yes")
    assert code == 1
    assert words in out
    assert "Download a new launcher." in out
    assert "Traceback" not in out
    assert not (volunteer.home / "envs").exists()


def test_without_a_terminal_it_does_nothing_unless_told_yes(volunteer, site):
    code, out = volunteer.start()
    assert code == 1
    assert "--yes" in out
    assert site.asked == []


def test_a_lock_that_is_not_the_announced_one_installs_nothing(volunteer, site):
    site.lock += "evil==1.0 --hash=sha256:" + "0" * 64 + "\n"
    code, out = volunteer.start("--yes")
    assert code == 1
    assert "not the one that the site announced" in out
    assert list(volunteer.home.glob("envs/*/.complete")) == []


def test_a_wheel_with_another_hash_is_refused(volunteer, site):
    name = next(path for path in site.files if "tiny-" in path)
    site.files[name] += b"more"
    code, out = volunteer.start("--yes")
    assert code == 1
    assert "hash" in out.lower()
    assert "agent:" not in out
    assert volunteer.device_files()  # the code is used, so the token must stay


def test_a_file_in_place_of_the_data_folder_is_said_in_words(volunteer, site):
    volunteer.home.write_text("a file")
    code, out = volunteer.start("--yes")
    assert code == 1
    assert "in the way" in out
    assert "--home" in out
    assert "Traceback" not in out
    assert site.codes[CODE] == "good"


def test_killed_midway_it_builds_anew(volunteer):
    process = volunteer.popen("--yes")
    wait_for("half an environment", lambda: list(volunteer.home.glob("envs/*/bin/python")))
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    assert not list(volunteer.home.glob("envs/*/.complete"))
    code, out = volunteer.start()
    assert code == 0, out
    assert "agent:" in out


def test_two_starts_at_once_build_one_environment(volunteer, site):
    site.codes[CODE] = "good"
    assert volunteer.start("--yes")[0] == 0
    for marker in volunteer.home.glob("envs/*/.complete"):
        marker.unlink()
    site.asked.clear()
    both = [volunteer.popen() for _ in range(2)]
    outs = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outs
    assert sum("Making a private" in out for out in outs) == 1


@pytest.fixture
def quick(volunteer, tmp_path):
    """A volunteer whose environment is there, enrolled with CODE, with an unsent report."""
    volunteer.env |= {"POTLUCK_ENV": sys.prefix, "PYTHONPATH": str(tmp_path)}
    (tmp_path / "tiny.py").write_text("")
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
    assert list(quick.home.glob("sites/*/demo/spool/old.jsonl"))


def test_a_revoked_device_stays_when_the_new_code_is_refused_too(quick, site):
    site.refused_tokens["t" * 43] = GONE[0]
    site.codes[NEW_CODE] = "expired"
    code, out = quick.start("--yes")
    assert code == 1
    assert "expired on 1 May 2026" in out
    assert list(quick.home.glob("sites/*/demo/spool/old.jsonl"))


def test_no_threads_are_refused_in_words(volunteer, site):
    code, out = volunteer.start("--yes", "--threads", "0")
    assert code == 2
    assert "0 is no number of threads that could train: give 1 or more" in out
    assert site.asked == []


def test_an_environment_that_is_there_is_reused(volunteer, site, tmp_path):
    volunteer.env["POTLUCK_ENV"] = sys.prefix
    volunteer.env["PYTHONPATH"] = str(tmp_path)
    (tmp_path / "tiny.py").write_text("")
    code, out = volunteer.start("--yes")
    assert code == 0, out
    assert f"tiny: {tmp_path}" in out
    assert f"use the Python environment of {sys.prefix}" in out
    assert "make a private" not in out
    assert not list(volunteer.home.glob("envs/*/bin"))


def test_no_secret_is_shown(volunteer):
    _, out = volunteer.start("--yes")
    assert CODE not in out
    assert "t" * 43 not in out
