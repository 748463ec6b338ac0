"""A short question to the trainer: a program that is started, answers and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from django.conf import settings

from webapp.core.processes import follow_parent_into_death, without_secrets


def ask(
    words: Sequence[str], given: bytes, *, longest_s: float, nice: int = 0
) -> tuple[bytes | None, str]:
    """What `python -m trainer` with `words` says to `given`; None and its last words if it fails.

    Raises TimeoutError.
    """

    def before() -> None:
        follow_parent_into_death()
        os.nice(nice)

    try:
        done = subprocess.run(
            [sys.executable, "-m", "trainer", *words],
            cwd=settings.BASE_DIR,
            env={**without_secrets(), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            input=given,
            capture_output=True,
            timeout=longest_s,
            preexec_fn=before,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    if done.returncode == 0:
        return done.stdout, ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return None, lines[-1] if lines else "no reason"
