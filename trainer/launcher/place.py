"""Where a device keeps its things: one data folder per person, one folder per site in it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Unusable(Exception):
    """A file or folder that cannot be used, in words for a person."""


def data_folder() -> Path:
    """`POTLUCK_HOME`, or the usual place of this system for a program's data."""
    chosen = os.environ.get("POTLUCK_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Potluck"
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "potluck"


def site_folder(home: Path, site: str) -> Path:
    """Readable, and different for different sites."""
    readable = re.sub(r"[^A-Za-z0-9.-]", "-", urlsplit(site).netloc)[:60]
    return home / "sites" / f"{readable}-{hashlib.sha256(site.encode()).hexdigest()[:8]}"


def in_words(error: OSError, path: Path) -> str:
    """What an error of the file system means to the person at the machine."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full: {path} cannot be written. Free some space and start again."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{path} may not be written. Make it yours, or choose another folder with --home."
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return f"{path} is in the way: a file where a folder must be. Move it, or use --home."
    return f"{path} cannot be used: {error.strerror or error}. Choose another folder with --home."


def make_folder(path: Path) -> Path:
    """The folder, private to this user and proven writable. Raises Unusable."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=path) as probe:
            probe.write(b"potluck")
            probe.flush()
    except OSError as error:
        raise Unusable(in_words(error, path)) from error
    return path


def write_whole(path: Path, text: str, mode: int = 0o600) -> None:
    """As `replace_whole`. Raises Unusable."""
    try:
        replace_whole(path, text, mode)
    except OSError as error:
        raise Unusable(in_words(error, path)) from error


def replace_whole(path: Path, text: str, mode: int = 0o600) -> None:
    """Replaces the file in one step, so that a full disk or a power cut leaves the old one.

    Raises OSError.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def stored_device(home: Path, site: str) -> dict[str, Any] | None:
    """What the site gave this device when it enrolled, or None. Raises Unusable when damaged."""
    path = site_folder(home, site) / "device.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unusable(in_words(error, path)) from error
    except ValueError as error:
        raise Unusable(f"{path} is damaged. Delete it and download a new launcher.") from error
    if not isinstance(found, dict) or not isinstance(found.get("token"), str):
        raise Unusable(f"{path} holds no device token. Delete it and download a new launcher.")
    return found


def store_device(home: Path, site: str, enrolled: dict[str, Any]) -> None:
    folder = make_folder(site_folder(home, site))
    write_whole(folder / "device.json", json.dumps({"site": site} | enrolled, indent=1))


def put_aside(home: Path, site: str, device: dict[str, Any]) -> None:
    """Moves what belongs to a former device (its token, keys and unsent reports) out of the way.

    Nothing is deleted, and nothing of it can be taken for the next device's. Raises Unusable.
    """
    folder = site_folder(home, site)
    name = hashlib.sha256(device["token"].encode()).hexdigest()[:12]
    former = make_folder(home / "former" / f"{folder.name}-{name}")
    try:
        for path in folder.iterdir():
            if path.is_dir() or path.name == "device.json":
                path.replace(former / path.name)
    except OSError as error:
        raise Unusable(in_words(error, former)) from error
