"""Wishes, files, the lock and the doctor."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import json
import os
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.answering import Answering
from trainer.agent.files import Files
from trainer.agent.seat import coordinator_seat, lock, volunteer_seat
from trainer.agent.wishes import Wishes
from trainer.device import clock, doctor
from trainer.launcher import web
from trainer.launcher.place import Unusable, store_device
from trainer.recipe import File
from trainer.wire import Control, LeaveCause, Wish

ROOT = Path(__file__).resolve().parents[2]


# ---------------------------------------------------------------- wishes
@pytest.mark.parametrize("wish", [Wish.RUN, Wish.PAUSE, Wish.FINISH])
def test_a12_the_volunteers_wish_outlives_the_sites_pauses_and_a_restart(tmp_path, wish):
    wishes = Wishes(tmp_path / "wish.json")
    wishes.volunteer(wish)
    wishes.site(Control(wish=Wish.PAUSE, reason="the organiser paused it"))
    wishes.site(Control(wish=Wish.RUN))
    wishes.stop("Ctrl-C")
    assert Wishes(tmp_path / "wish.json").current().wish is wish


def test_the_stronger_wish_counts_and_says_whose_it_is(tmp_path):
    told = []
    wishes = Wishes(tmp_path / "wish.json", told.append)
    wishes.site(Control(wish=Wish.PAUSE, reason="the organiser paused it"))
    assert wishes.current().reason == "the organiser paused it"
    wishes.volunteer(Wish.FINISH)
    assert wishes.current().wish is Wish.FINISH
    wishes.site(Control(wish=Wish.STOP, cause=LeaveCause.BANNED, reason="made-up samples"))
    wishes.stop("Ctrl-C")
    wishes.stop("again")
    assert wishes.current().reason == "Ctrl-C"
    assert [control.wish for control in told] == ["pause", "finish", "stop", "stop"]


def test_a15_a_damaged_wish_file_means_run(tmp_path):
    (tmp_path / "wish.json").write_text("{")
    assert Wishes(tmp_path / "wish.json").current().wish is Wish.RUN


# ---------------------------------------------------------------- files
class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Static files with ranges; `cut` closes the connection after so many bytes, once."""

    cut = 0
    asked: list[str] = []

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        wanted = self.headers.get("Range", "")
        type(self).asked.append(wanted)
        start = int(wanted[6:-1]) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        stop, type(self).cut = type(self).cut or len(data), 0
        self.wfile.write(data[start:stop])

    def log_message(self, *args):
        """Silent."""


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


@contextlib.contextmanager
def serving(folder: Path):
    server = Server(("127.0.0.1", 0), functools.partial(RangeHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def artifact(tmp_path):
    data = os.urandom(700_000)
    digest = hashlib.sha256(data).hexdigest()
    path = tmp_path / "site" / "artifacts" / digest / "model.safetensors"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    RangeHandler.asked.clear()
    return path, File(sha256=digest, size_bytes=len(data), filename=path.name)


def test_a_broken_download_goes_on_where_it_stopped(tmp_path, artifact):
    path, file = artifact
    with serving(tmp_path / "site") as site:
        files = Files(site, tmp_path / "cache")
        RangeHandler.cut = 300_000
        with pytest.raises(web.Unreachable, match="broke off"):
            files.fetch(file)
        assert files.fetch(file).read_bytes() == path.read_bytes()
        assert files.fetch(file).read_bytes() == path.read_bytes()
    assert RangeHandler.asked == ["", "bytes=300000-"]


def test_a_download_is_shown_to_its_last_byte(tmp_path, artifact):
    _, file = artifact
    shown = []
    with serving(tmp_path / "site") as site:
        Files(site, tmp_path / "cache", lambda *seen: shown.append(seen)).fetch(file)
    assert shown[-1] == (file.filename, file.size_bytes, file.size_bytes)


@pytest.mark.parametrize("damage", ["empty", "half", "one byte"])
def test_a15_a_file_damaged_on_disk_is_fetched_again(tmp_path, artifact, damage):
    path, file = artifact
    with serving(tmp_path / "site") as site:
        files = Files(site, tmp_path / "cache")
        local = files.fetch(file)
        data = bytearray(local.read_bytes())
        data[1000] ^= 1
        local.write_bytes({"empty": b"", "half": data[:350_000], "one byte": data}[damage])
        assert files.fetch(file).read_bytes() == path.read_bytes()


def test_a_file_with_another_content_than_announced_is_never_used(tmp_path, artifact):
    path, file = artifact
    path.write_bytes(b"something else")
    with serving(tmp_path / "site") as site, pytest.raises(web.Damaged):
        Files(site, tmp_path / "cache").fetch(file)
    assert not [found for found in (tmp_path / "cache").rglob("*") if found.is_file()]


# ---------------------------------------------------------------- seat
def test_a_second_agent_of_the_same_device_is_told_so(tmp_path):
    held = lock(tmp_path)
    code = (
        "import sys, pathlib; from trainer.agent.seat import lock; lock(pathlib.Path(sys.argv[1]))"
    )
    second = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"already takes part in {tmp_path.name} (process {os.getpid()})" in second.stderr
    held.close()


def test_a_device_without_a_token_is_told_where_to_get_one(tmp_path):
    with pytest.raises(Unusable, match="not enrolled"):
        volunteer_seat(tmp_path, "http://site.test", "demo", place=pytest.fail)


def test_the_token_file_is_readable_by_its_owner_only(tmp_path):
    store_device(tmp_path, "http://site.test", {"token": "t" * 40, "collaboration": "demo"})
    (file,) = tmp_path.rglob("device.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert volunteer_seat(tmp_path, "http://site.test", None, place=pytest.fail).slug == "demo"


def test_a_coordinators_configuration_is_checked_without_repeating_its_token(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"site": "http://x", "token": "t" * 40, "collaboration": "No!"}))
    with pytest.raises(Unusable) as caught:
        coordinator_seat(file)
    assert "collaboration" in str(caught.value)
    assert "tttt" not in str(caught.value)


# ---------------------------------------------------------------- doctor
class ClockSite(Answering):
    def __init__(self, offset_s: float) -> None:
        self.offset_s = offset_s

    def answer(self, method, path, body):
        return 200, json.dumps({"now": time.time() + self.offset_s}).encode()


@pytest.mark.parametrize(
    ("offset_s", "words"),
    [
        (-43_140, "your clock is 11 h 59 m ahead of the site's"),
        (28_800, "your clock is 8 h 0 m behind the site's"),
        (600, "your clock is 10 m behind the site's"),
        (-4, "your clock is 4 s ahead of the site's"),
    ],
)
def test_a16_a_wrong_clock_is_measured_and_said(offset_s, words):
    site = ClockSite(offset_s).start()
    assert clock.offset_s(site.url) == pytest.approx(offset_s, abs=1)
    found = {finding.name: finding for finding in doctor.check_site(site.url)}
    site.stop()
    assert words in found["Clock"].words
    assert found["Site"].state is doctor.State.GOOD


def test_the_doctor_says_what_cannot_be_reached_and_what_to_do(tmp_path):
    (away,) = doctor.check_site("http://127.0.0.1:9")
    assert away.state is doctor.State.DOUBTFUL
    assert away.fix
    swarm = doctor.check_swarm(["/ip4/127.0.0.1/tcp/9/p2p/Qm"])
    assert "no answer at 127.0.0.1:9" in swarm.words
    with serving(tmp_path) as site:
        (other,) = doctor.check_site(site)
    assert other.state is doctor.State.BAD


def test_the_doctor_finds_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    assert doctor.check_disk(tmp_path / "file" / "potluck").state is doctor.State.BAD


def test_commands_have_at_most_eight_flags():
    from trainer.commands import _parser

    (acts,) = [act for act in _parser()._actions if act.choices]
    for parser in acts.choices.values():
        flags = [act for act in parser._actions if act.option_strings and act.dest != "help"]
        assert len(flags) <= 8
