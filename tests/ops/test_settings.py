"""A setting that is wrong is told in one line: its name, its value, what is expected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def run(command: str, tmp_path: Path, **changed: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), command],
        env={**kept, "DATA_DIR": str(tmp_path / "data"), **changed},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("HTTP_PORT", "abc", "a whole number from 1 to 65535"),
        ("HTTP_PORT", "99999", "a whole number from 1 to 65535"),
        ("SITE_URL", "nonsense", "an address such as https://name"),
        ("DATA_DIR", "/proc/x", "a folder this account can write to"),
        ("EMAIL_URL", "foo", "an address such as smtp"),
        ("DATABASE_URL", "foo", "an address such as postgres"),
        ("VALKEY_URL", "foo", "an address such as redis"),
        ("LOG_LEVEL", "LOUD", "one of DEBUG, INFO"),
        ("PRODUCTION", "maybe", "true or false"),
    ],
)
def test_a_bad_setting_is_one_line_with_name_value_and_what_is_expected(
    tmp_path, setting, value, expected
):
    for command in ("up", "check"):
        ended = run(command, tmp_path, **{setting: value})
        assert ended.returncode == 1
        assert f"{setting} is '{value}': expected {expected}" in ended.stderr
        assert len(ended.stderr.splitlines()) == 1


def test_production_without_a_key_and_passwords_in_addresses(tmp_path):
    ended = run("up", tmp_path, PRODUCTION="true")
    assert "SECRET_KEY" in ended.stderr and len(ended.stderr.splitlines()) == 1
    ended = run("check", tmp_path, DATABASE_URL="mysql://ada:hidden@host/name")
    assert "mysql://…@host/name" in ended.stderr and "hidden" not in ended.stderr
