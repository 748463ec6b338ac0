"""A hub, asked before a collaboration that needs it is opened. `HF_ENDPOINT` in the environment
names another one, `HF_TOKEN` is for what is not public, as for devices."""

from __future__ import annotations

import json
import os
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

from trainer.recipe import DataSet
from trainer.sources.hub import list_of, places_in
from webapp.core.errors import UserError

HUB = "https://huggingface.co"
PATIENCE_S = 10.0
MOST_BYTES = 50 * 2**20


def require_files(dataset: DataSet) -> None:
    """Raises UserError when the hub has no Parquet files of it."""
    listed = _asked(list_of(dataset))
    try:
        places = places_in(dataset, json.loads(listed))
    except ValueError:
        places = []
    if not places:
        raise UserError(
            f"{_hub()} lists no Parquet files of {dataset.word} {dataset.config} {dataset.split}.",
            "Look there whether it has another name now, and change the recipe's file.",
        )


def fetch_tokenizer(name: str, revision: str, path: Path) -> None:
    """The `tokenizer.json` of a model. Raises UserError."""
    path.write_bytes(_asked(f"/{name}/resolve/{revision}/tokenizer.json"))


def _hub() -> str:
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB


def _asked(place: str) -> bytes:
    """Raises UserError, which says what the hub answers, or that it does not."""
    address = _hub() + place
    token = os.environ.get("HF_TOKEN", "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - whoever runs it names it
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            content: bytes = answer.read(MOST_BYTES + 1)
    except HTTPError as error:
        raise UserError(
            f"{address} answers {error.code} {error.reason}.",
            "Look there whether it has another name now; what is not public needs HF_TOKEN.",
        ) from error
    except (OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", "") or error
        raise UserError(
            f"The hub at {_hub()} cannot be reached: {why}.",
            "Try again where it can, name another one in HF_ENDPOINT, or see whether the recipe "
            "has a form without a hub (--offline).",
        ) from error
    if len(content) > MOST_BYTES:
        raise UserError(f"{address} has more than {MOST_BYTES} bytes: that is no such file.")
    return content
