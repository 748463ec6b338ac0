"""The folder of content-addressed files: `<first two digits>/<sha256>`."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

FRESH_S = 600.0  # who takes a file up names it in the database within so many seconds


def checkpoint_folder(slug: str) -> Path:
    """Where the coordinator of this collaboration writes checkpoints for the site to take over."""
    return Path(settings.DATA_DIR) / "coordinators" / slug / "checkpoints"


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def relative_path(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}"


def absolute_path(relative: str) -> Path:
    return Path(settings.ARTIFACTS_DIR) / relative


@contextmanager
def locked() -> Iterator[None]:
    """One at a time puts files into the folder, or out of it."""
    folder = Path(settings.ARTIFACTS_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def keep(source: Path, sha256: str) -> str:
    """Puts a copy (a hard link where the file system allows it) in place; returns its path there.

    The file appears complete or not at all: it is written beside its place, then renamed. One that
    is there already becomes fresh, so that nobody sweeps it before it is named again.
    """
    target = absolute_path(relative_path(sha256))
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{uuid.uuid4().hex}")
    try:
        _link_or_copy(source, draft)
        with locked():
            draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return relative_path(sha256)


def _link_or_copy(source: Path, draft: Path) -> None:
    try:
        os.link(source, draft)
    except OSError:  # another file system, or one without hard links
        with source.open("rb") as given, draft.open("wb") as file:
            shutil.copyfileobj(given, file, 1024 * 1024)
            file.flush()
            os.fsync(file.fileno())


def sweep(named: set[str]) -> int:
    """Deletes what is not `named`, drafts of dead processes too, but nothing fresh; how many.

    Fresh goes by when the file was put or linked there (ctime), not by the age of its content.
    """
    swept = 0
    for path in Path(settings.ARTIFACTS_DIR).glob("??/*"):
        is_fresh = time.time() - path.stat().st_ctime < FRESH_S
        if f"{path.parent.name}/{path.name}" not in named and not is_fresh:
            path.unlink()
            swept += 1
    return swept
