"""The folder of content-addressed files: `<first two digits>/<sha256>`."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from pathlib import Path

from django.conf import settings


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


def keep(source: Path, sha256: str) -> str:
    """Puts a copy (a hard link where the file system allows it) in place; returns its path there.

    The file appears complete or not at all: it is written beside its place, then renamed.
    """
    target = absolute_path(relative_path(sha256))
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{uuid.uuid4().hex}")
        try:
            _link_or_copy(source, draft)
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


def forget(relative: str) -> None:
    absolute_path(relative).unlink(missing_ok=True)
