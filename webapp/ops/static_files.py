"""Collects static files only when one of them changed: compressing plotly takes seconds."""

from __future__ import annotations

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

STAMP = "collected.sha256"


def fingerprint() -> str:
    """SHA-256 over name, size and time of every static file."""
    lines = []
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            prefix = getattr(storage, "prefix", None) or ""
            lines.append(f"{prefix}/{name} {facts.st_size} {facts.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def collect_if_changed() -> bool:
    """True when files were collected by this call."""
    stamp = settings.STATIC_ROOT / STAMP
    wanted = fingerprint()
    if stamp.exists() and stamp.read_text() == wanted:
        return False
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(wanted)
    return True
