"""Look at your data: ten training batches of a collaboration, and what was counted of its texts."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from trainer.recipe import Recipe, Text
from webapp.artifacts.look import look
from webapp.collaborations.dataset_field import words_of
from webapp.core.errors import UserError
from webapp.pages.acts import organisers_only
from webapp.pages.collaboration import find


@require_http_methods(["GET", "HEAD", "POST"])
@organisers_only
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """It takes seconds, so it is looked when that is asked for by a post."""
    found = find(request, slug)
    context: dict[str, Any] = {"collaboration": found, "recipe": found.recipe}
    if request.method == "POST":
        try:
            context |= _shown(found.recipe)
        except UserError as error:
            context["problem"] = str(error)
    return render(request, "data.html", context)


def _shown(recipe: Recipe) -> dict[str, Any]:
    shown = look(recipe)
    return {
        "shown": shown,
        "texts": list(zip(map(_name, recipe.texts), shown["texts"], strict=True)),
    }


def _name(text: Text) -> str:
    if text.file:
        return text.file.filename
    return words_of(text.dataset) if text.dataset else text.url or text.path or "volunteers' own"
