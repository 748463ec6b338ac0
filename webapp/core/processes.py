"""Starting other programs so that none is left behind."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

PR_SET_PDEATHSIG = 1
SECRETS = (
    "HUB_TOKEN",
    "SECRET_KEY",
    "DATABASE_URL",
    "EMAIL_URL",
    "GITHUB_LOGIN_SECRET",
    "GOOGLE_LOGIN_SECRET",
)


def follow_parent_into_death() -> None:
    """Runs between fork and exec: a supervisor killed with -9 leaves no orphan (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def without_secrets() -> dict[str, str]:
    """The environment, for programs that need none of the site's keys."""
    return {name: value for name, value in os.environ.items() if name not in SECRETS}


def signal_group(leader: int, number: signal.Signals) -> None:
    """To a program started in a session of its own and to all that it started; gone is fine."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
