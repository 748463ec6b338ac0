"""Reads the environment for the settings; what is wrong is told in one line, with the name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
DATABASES = ("sqlite", "postgres", "postgresql", "psql", "pgsql")
YES, NO = ("true", "on", "yes", "1", "ok", "y"), ("false", "off", "no", "0", "n", "")


def refuse(name: str, value: object, expected: str) -> NoReturn:
    raise ImproperlyConfigured(f"{name} is {str(value)!r}: expected {expected}.")


def whole_number(name: str, default: int, *, low: int, high: int) -> int:
    text = os.environ.get(name, "").strip() or str(default)
    expected = f"a whole number from {low} to {high}"
    try:
        value = int(text)
    except ValueError:
        refuse(name, text, expected)
    if not low <= value <= high:
        refuse(name, text, expected)
    return value


def port(name: str, default: int) -> int:
    return whole_number(name, default, low=1, high=65535)


def switch(name: str) -> bool:
    """Off where it is not set; a word that is neither yes nor no must not mean no in silence."""
    text = os.environ.get(name, "").strip().lower()
    if text not in YES + NO:
        refuse(name, text, "true or false")
    return text in YES


def site_url(name: str, default: str) -> str:
    text = os.environ.get(name, "").strip().rstrip("/") or default
    expected = "an address such as https://name or http://name:8000"
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        refuse(name, text, expected)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        refuse(name, text, expected)
    return text


def folder(name: str, default: Path) -> Path:
    """Made when it is missing; it must take files."""
    path = Path(os.environ.get(name, "") or default).resolve()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        refuse(name, path, f"a folder this account can write to ({error.strerror})")
    return path


def level(name: str) -> str:
    text = os.environ.get(name, "").strip().upper() or "INFO"
    if text not in LEVELS:
        refuse(name, text, f"one of {', '.join(LEVELS)}")
    return text


def database(name: str, default: str) -> dict[str, Any]:
    expected = "an address such as postgres://user:password@host/name or sqlite:////folder/file"
    if urlsplit(os.environ.get(name) or default).scheme not in DATABASES:
        refuse(name, _shown(name), expected)
    return _address(name, lambda: environ.Env().db_url(name, default=default), expected)


def email(name: str, default: str) -> dict[str, Any]:
    expected = "an address such as smtp+tls://user:password@host:587"
    return _address(name, lambda: environ.Env().email_url(name, default=default), expected)


def valkey_url(name: str) -> str:
    """Empty: the bundled server."""
    text = os.environ.get(name, "").strip()
    if text and urlsplit(text).scheme not in ("redis", "rediss"):
        refuse(name, _shown(name), "an address such as redis://host:6379/0")
    return text


def _address(name: str, read: Callable[[], dict[str, Any]], expected: str) -> dict[str, Any]:
    """What `read` makes of the variable `name`; whatever it raises becomes one line."""
    try:
        return read()
    except Exception:
        refuse(name, _shown(name), expected)


def _shown(name: str) -> str:
    """Without the user and password that may be in it."""
    before, at, after = os.environ.get(name, "").rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else after
