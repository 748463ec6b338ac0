"""Whether the texts that a recipe names by web address can be fetched, seen from the site."""

from __future__ import annotations

import urllib.request
from http.client import HTTPException
from urllib.error import HTTPError

from trainer.recipe import Recipe

PATIENCE_S = 5.0


def addresses(recipe: Recipe) -> list[str]:
    texts = [*recipe.texts, recipe.held_out]
    return [text.url for text in texts if text is not None and text.kind == "http"]


def fetch_problem(recipe: Recipe) -> str:
    """The first address that does not answer, and how, in words; empty: all do.

    Asks for one byte of each and waits up to `PATIENCE_S` for it.
    """
    for url in addresses(recipe):
        if why := _problem(url):
            return f"The text at {url} cannot be fetched: {why}."
    return ""


def _problem(url: str) -> str:
    try:
        request = urllib.request.Request(url, headers={"Range": "bytes=0-0"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - http(s)
            answer.read(1)
    except HTTPError as error:
        return f"it answers {error.code} {error.reason}"
    except (OSError, HTTPException, ValueError) as error:
        return str(getattr(error, "reason", "") or error)
    return ""
