"""The texts of a recipe, from what the organiser chose in the form, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from trainer.recipe import File, Text
from webapp.collaborations.dataset_field import words_of

OWN = "own"


def file_of(artifact: Any) -> File:
    return File(sha256=artifact.sha256, size_bytes=artifact.size_bytes, filename=artifact.filename)


def site_text(artifact: Any) -> Text:
    return Text(kind="site", file=file_of(artifact), credit=artifact.credit)


def chosen_texts(
    cleaned: Mapping[str, Any], artifacts: Mapping[str, Any], known: Mapping[str, str]
) -> list[Text]:
    """Files of the site as the form lists them, then what is on the web, then volunteers' own.

    `known`: whose those on the web are, by their keys. Raises ValidationError where there are other
    than as many weights.
    """
    texts = [site_text(file) for key, file in artifacts.items() if key in cleaned["texts"]]
    texts += [Text(kind="http", url=url) for url in cleaned["text_url"]]
    texts += [Text(kind="datasets", dataset=dataset) for dataset in cleaned["dataset"]]
    texts += [Text(kind="private")] * cleaned["own_texts"]
    weights = cleaned["weights"] or [1.0] * len(texts)
    if len(weights) != len(texts):
        raise forms.ValidationError(
            f"There are {len(texts)} texts and {len(weights)} shares: write one for each text, or "
            "none, and they are read alike."
        )
    return [
        text.model_copy(
            update={"weight": weight, "credit": text.credit or known.get(key_of(text), "")}
        )
        for text, weight in zip(texts, weights, strict=True)
    ]


def key_of(text: Text) -> str:
    """What tells this text from others of its recipe."""
    if text.dataset:
        return words_of(text.dataset)
    return text.file.sha256 if text.file else text.url or text.path or OWN


def keys_shown(initial: Mapping[str, Any], listed: Sequence[str]) -> list[str]:
    """Of the texts that the form shows at first, in its order."""
    lines = [*initial.get("text_url", "").splitlines(), *initial.get("dataset", "").splitlines()]
    files = [key for key in listed if key in initial.get("texts", [])]
    return [*files, *lines, *([OWN] if initial.get("own_texts") else [])]
