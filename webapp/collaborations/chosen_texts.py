"""The texts of a recipe, from what the organiser chose in the form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.recipe import File, Text


def file_of(artifact: Any) -> File:
    return File(sha256=artifact.sha256, size_bytes=artifact.size_bytes, filename=artifact.filename)


def site_text(artifact: Any) -> Text:
    return Text(kind="site", file=file_of(artifact), credit=artifact.credit)


def chosen_texts(cleaned: Mapping[str, Any], artifacts: Mapping[str, Any]) -> list[Text]:
    """Files of the site first, then what is on the web, then volunteers' own."""
    texts = [site_text(artifacts[sha256]) for sha256 in cleaned["texts"]]
    if cleaned["text_url"]:
        texts.append(Text(kind="http", url=cleaned["text_url"]))
    if cleaned["dataset"]:
        texts.append(Text(kind="datasets", dataset=cleaned["dataset"]))
    if cleaned["own_texts"]:
        texts.append(Text(kind="private"))
    return texts
