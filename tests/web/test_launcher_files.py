"""What the site hands out to launchers."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import threading
import zipfile

import pytest

from trainer.launcher.environment import builder_of
from webapp.core.errors import UserError
from webapp.launcher import builder, scripts, wheel

CONFIG = {
    "site": "http://testserver",
    "code": "c" * 43,
    "collaboration": "demo",
    "device_name": "আমার ল্যাপটপ",
}


def test_the_trainers_wheel_installs_and_its_hash_is_stable(tmp_path):
    path = wheel.trainer_wheel()
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    wheel.write_wheel(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert wheel.manifest()["trainer"] == {"name": path.name, "sha256": before}
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*install, "--target", tmp_path, path], check=True)
    shown = subprocess.run(
        [sys.executable, "-c", "import trainer.wire; print(trainer.wire.__file__)"],
        cwd="/",
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.startswith(str(tmp_path))


def test_launchers_that_ask_together_get_one_wheel_that_is_built_once(settings, tmp_path):
    """Built by several threads at once, it was another file than the one that was announced."""
    settings.DATA_DIR = tmp_path
    wheel._built.cache_clear()
    together = threading.Barrier(8)
    found = []

    def ask() -> None:
        together.wait()
        path = wheel.trainer_wheel()
        found.append((wheel.described(path), zipfile.ZipFile(path).testzip()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wheel._built.cache_clear()
    assert len(found) == 8 and all(one == (found[0][0], None) for one in found)


def test_the_manifest_names_the_hash_of_each_lock():
    for kind, sha256 in wheel.manifest()["locks"].items():
        assert hashlib.sha256(wheel.lock_text(kind).encode()).hexdigest() == sha256


@pytest.mark.parametrize("kind", wheel.LOCKS)
def test_the_builder_of_each_lock_is_named_with_all_its_hashes(kind):
    lock = wheel.lock_text(kind)
    entries = lock.replace("\\\n", " ").splitlines()
    (builder,) = [entry.split() for entry in entries if entry.startswith("setuptools==")]
    assert len(builder) >= 3
    assert builder_of(lock.encode()).decode().replace("\\\n", " ").split() == builder


@pytest.mark.parametrize("name", ["../secret_key", "nothing.whl", ""])
def test_no_other_file_is_handed_out_as_a_wheel(name):
    with pytest.raises(UserError):
        wheel.wheel_path(name)


def test_a_personal_launcher_holds_its_configuration_and_nothing_else_changes():
    made = zipfile.ZipFile(io.BytesIO(builder.personal_pyz(CONFIG)))
    shared = zipfile.ZipFile(io.BytesIO(builder.shared_pyz()))
    assert json.loads(made.read("config.json")) == CONFIG
    assert set(made.namelist()) - set(shared.namelist()) == {"config.json"}
    assert builder.personal_pyz(CONFIG).startswith(b"#!/usr/bin/env python3\n")


def test_the_archives_hold_an_executable_starter_the_launcher_and_a_text():
    name, content = scripts.archive("linux", CONFIG)
    assert name == "potluck-device.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        modes = {entry.name: entry.mode for entry in tar}
    assert modes == {
        "potluck/potluck.pyz": 0o755,
        "potluck/Start Potluck.desktop": 0o755,
        "potluck/README.txt": 0o644,
    }
    _, content = scripts.archive("macos", CONFIG)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        starter = archive.getinfo("potluck/Start Potluck.command")
        assert starter.external_attr >> 16 == 0o100755
        assert CONFIG["device_name"] in archive.read("potluck/README.txt").decode()


def test_windows_gets_one_honest_sentence():
    with pytest.raises(UserError, match="no launcher for windows") as told:
        scripts.archive("windows", CONFIG)
    assert "WSL2" in told.value.next_step
