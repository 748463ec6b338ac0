"""The environment of the two commands: what happens to an installation that is broken off."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.waiting import wait_for

INSTALL = Path(__file__).parents[2] / "requirements" / "install.py"


def _wheel(folder: Path, files: int) -> Path:
    """A package `big` of so many files."""
    info = "big-1.0.dist-info"
    content = {f"big/part{number}.py": b"" for number in range(files)}
    content |= {
        "big/__init__.py": b"",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: big\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for name, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    wheel = folder / "big-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        for name, data in content.items():
            out.writestr(name, data)
        out.writestr(f"{info}/RECORD", "\n".join([*lines, f"{info}/RECORD,,"]))
    return wheel


@pytest.fixture
def lock(tmp_path):
    wheel = _wheel(tmp_path, files=4_000)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock = tmp_path / "lock.txt"
    lock.write_text(f"big==1.0 --hash=sha256:{digest}\n")
    return lock


def _start(venv: Path, lock: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(INSTALL), str(venv), str(lock)],
        env={
            **os.environ,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(lock.parent),
            "TORCH_CPU_INDEX": "",
        },
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def test_an_installation_that_is_broken_off_is_made_anew(tmp_path, lock):
    venv = tmp_path / "venv"
    first = _start(venv, lock)
    wait_for("file of the package", lambda: any(venv.glob("lib/*/site-packages/big/part*")))
    os.killpg(first.pid, signal.SIGINT)
    _, said = first.communicate(timeout=120)
    assert first.returncode != 0
    assert "Broken off; the next call begins anew." in said
    assert INSTALL.name not in said  # no traceback of ours

    again = _start(venv, lock)
    out, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert "was broken off: it is made anew" in out
    assert len(list(venv.glob("lib/*/site-packages/big/part*.py"))) == 4_000

    third = _start(venv, lock)
    assert third.communicate(timeout=120) == ("", "")
    assert third.returncode == 0


@pytest.mark.soak
def test_two_installations_at_once_take_turns(tmp_path, lock):
    venv = tmp_path / "venv"
    both = [_start(venv, lock), _start(venv, lock)]
    said = [one.communicate(timeout=300) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert sorted("Installing" in out for out, _ in said) == [False, True]  # once is enough
