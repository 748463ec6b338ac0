"""The description of a model, in Markdown with a hub's metadata: made of facts and of nothing else.

What the site does not know is said to be unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from trainer import catalogue
from trainer.catalogue import adapter_of, family_of
from trainer.parts import Text
from trainer.recipe import Recipe
from trainer.wire import Role
from webapp.artifacts.models import Checkpoint
from webapp.artifacts.selectors import texts as site_texts
from webapp.collaborations.dataset_field import words_of
from webapp.collaborations.rules import rule_of
from webapp.collaborations.sizes import size_of
from webapp.credit.selectors import collaboration_totals, contributors
from webapp.devices.models import Session
from webapp.evaluations.selectors import Line, Table, tables
from webapp.live.facts import APPLIED
from webapp.registry.retention import held_out_losses

TEMPLATE = "model_card.md"
PIPELINES = {
    "masked": ("fill-mask", "AutoModelForMaskedLM"),
    "causal": ("text-generation", "AutoModelForCausalLM"),
    "prefix": ("text-generation", "AutoModelForCausalLM"),
    "spans": ("text2text-generation", "AutoModelForSeq2SeqLM"),
}
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class Data:
    """One text, by `name`; `share` of what is read; whose it is, if that is known."""

    name: str
    share: float
    credit: str
    is_private: bool


def card(checkpoint: Checkpoint, *, names_people: bool = True) -> str:
    """Of one that is kept, as of now."""
    found = facts(checkpoint, timezone.now())
    return render_to_string(TEMPLATE, {**found, "names_people": names_people})


def facts(checkpoint: Checkpoint, now: datetime) -> dict[str, Any]:
    collaboration = checkpoint.collaboration
    recipe = collaboration.recipe
    page = reverse("pages:collaboration", args=[collaboration.slug])
    pipeline, auto = PIPELINES[family_of(recipe).objective.kind]
    named, others = contributors(collaboration)
    return {
        "collaboration": collaboration,
        "checkpoint": checkpoint,
        "sha256": checkpoint.file.sha256,
        "held_out_loss": held_out_losses([checkpoint]).get(checkpoint.pk),
        "recipe": recipe,
        "recipe_sha256": collaboration.revision.sha256,
        "family": catalogue.plugins("families")[recipe.family.name].label,
        "rule": rule_of(recipe.strategy.name),
        "adapter": adapter_of(recipe),
        "base": _base_of(recipe),
        "parameters": size_of(recipe).parameters,
        "pipeline": pipeline,
        "auto": auto,
        "data": _data_of(recipe),
        "datasets": [text.dataset.name for text in recipe.texts if text.dataset],
        "effort": _effort(checkpoint),
        "named": named,
        "others": others,
        "tables": _results(tables(collaboration), checkpoint.file.sha256),
        "site_name": settings.SITE_NAME,
        "address": f"{settings.SITE_URL}{page}",
        "card_address": settings.SITE_URL
        + reverse("pages:model_card", args=[collaboration.slug, checkpoint.pk]),
        "now": now,
    }


def _base_of(recipe: Recipe) -> dict[str, str] | None:
    """`hub_name` where it is a hub's, which its metadata may name."""
    base = recipe.base
    if base is None:
        return None
    name = base.place.partition("@")[0] if base.kind == "hub" else ""
    place = base.place if base.kind in ("hub", "http") else ""
    return {"place": place, "hub_name": name, "sha256": base.sha256}


def _data_of(recipe: Recipe) -> list[Data]:
    titles = {text.sha256: text.title for text in site_texts()}
    whole = sum(text.weight for text in recipe.texts)
    return [
        Data(_name_of(text, titles), text.weight / whole, text.credit, text.kind == "private")
        for text in recipe.texts
    ]


def _name_of(text: Text, titles: dict[str, str]) -> str:
    if text.file is not None:
        return titles.get(text.file.sha256) or text.file.filename
    if text.dataset is not None:
        return words_of(text.dataset)
    if text.url:  # a query may hold a key
        address = urlsplit(text.url)
        return f"{address.hostname}{address.path}"
    return Path(text.path).name or "texts of each volunteer's own"


def _effort(checkpoint: Checkpoint) -> dict[str, Any]:
    """Of the collaboration until now."""
    collaboration = checkpoint.collaboration
    totals = collaboration_totals(collaboration)
    sessions = Session.objects.filter(collaboration=collaboration).exclude(role=Role.COORDINATOR)
    return {
        "samples": totals.samples,
        "tokens": totals.tokens,
        "hours": totals.compute_s / SECONDS_PER_HOUR,
        "rounds": collaboration.rounds.filter(outcome__in=APPLIED).count(),
        "devices": sessions.exclude(device=None).values("device").distinct().count(),
    }


def _results(found: Iterable[Table], sha256: str) -> list[tuple[Table, list[Line]]]:
    """Of each task that tells something: its table, and the line of this checkpoint, if any."""
    shown = []
    for table in found:
        own = [line for line in table.checkpoints if line.evaluation and line.scores]
        here = [line for line in own if line.evaluation and line.evaluation.sha256 == sha256]
        if here or table.baselines:
            shown.append((table, here))
    return shown
