"""What a tokenizer of the site makes of a text: asked of the trainer, in a process of its own."""

from __future__ import annotations

import json
from typing import Any

from webapp.artifacts.models import Artifact
from webapp.artifacts.storage import absolute_path
from webapp.core.answers import ask
from webapp.core.errors import UserError

LONGEST_S = 20.0


def preview(tokenizer: Artifact, text: str) -> dict[str, Any]:
    """As `trainer.text.preview` tells it. Raises UserError when there is no answer."""
    file = absolute_path(tokenizer.path)
    if not file.is_file():
        raise UserError(f"The file of {tokenizer} is not on the site's disk any more.")
    words = ["tokenizer", "--preview", str(file)]
    try:
        said, why = ask(words, text.encode(errors="replace"), longest_s=LONGEST_S)
    except TimeoutError as error:
        raise UserError(
            f"{tokenizer} did not answer within {LONGEST_S:.0f} s.", "Try a shorter text, or again."
        ) from error
    if said is None:
        raise UserError(f"{tokenizer} cannot be shown: {why[:200]}")
    found: dict[str, Any] = json.loads(said)
    return found
