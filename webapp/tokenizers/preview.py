"""What a tokenizer of the site makes of a text: asked of the trainer, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from django.conf import settings

from webapp.artifacts.models import Artifact
from webapp.artifacts.storage import absolute_path
from webapp.core.errors import UserError

LONGEST_S = 20.0


def preview(tokenizer: Artifact, text: str) -> dict[str, Any]:
    """As `trainer.text.preview` tells it. Raises UserError when there is no answer."""
    file = absolute_path(tokenizer.path)
    if not file.is_file():
        raise UserError(f"The file of {tokenizer} is not on the site's disk any more.")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "trainer", "tokenizer", "--preview", str(file)],
            cwd=settings.BASE_DIR,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            input=text.encode(errors="replace"),
            capture_output=True,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"{tokenizer} did not answer within {LONGEST_S:.0f} s.", "Try a shorter text, or again."
        ) from error
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"{tokenizer} cannot be shown: {words[-1][:200] if words else 'no reason'}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
