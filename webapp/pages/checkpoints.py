"""The registry of a collaboration's checkpoints: what is there, its worth, and why it stays."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from trainer.catalogue import adapter_of
from webapp.collaborations import access
from webapp.collaborations.models import Collaboration
from webapp.core.templatetags.ui import duration, number
from webapp.pages.acts import acting_user, attempt, back
from webapp.pages.collaboration import find
from webapp.registry import selectors, services
from webapp.registry.forms import RulesForm
from webapp.registry.retention import LOADING


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """To those who may see them; what organisers post are other rules."""
    collaboration = find(request, slug)
    organises = access.may(request.user, "keep", collaboration)
    if request.method == "POST" and not organises:
        raise PermissionDenied(access.refusal(request.user, "keep", collaboration))
    given = request.POST if request.method == "POST" else None
    form = RulesForm(given, instance=find(request, slug))
    if given is not None and form.is_valid():
        by = acting_user(request)
        done = _("The rules were saved.")
        attempt(request, lambda: services.set_rules(collaboration, form.cleaned_data, by=by), done)
        return back("checkpoints", slug)
    context = {"collaboration": collaboration, "organises": organises, "form": form}
    if why := access.refusal(request.user, "download", collaboration):
        status = 403
        context["refusal"] = why
    else:
        status = 200
        context |= _shown(request, collaboration)
    return render(request, "checkpoints.html", context, status=status)


def _shown(request: HttpRequest, collaboration: Collaboration) -> dict[str, Any]:
    page, rows = selectors.rows(collaboration, request.GET.get("page", 1))
    recipe = collaboration.recipe
    return {
        "page": page,
        "rows": rows,
        "stock": selectors.stock(collaboration),
        "kept": kept(collaboration),
        "adapter": adapter_of(recipe),
        "every": recipe.round.checkpoint_every,
    }


def kept(collaboration: Collaboration) -> list[str]:
    """What stays, in words."""
    last, every = collaboration.keep_last, collaboration.keep_every
    return [
        _("the last %(n)s") % {"n": number(last)} if last > 1 else _("the newest"),
        _("the one with the best held-out loss"),
        *([_("one in every %(n)s rounds") % {"n": number(every)}] if every else []),
        *([_("those that were evaluated")] if collaboration.keep_evaluated else []),
        _("those that an organiser pinned"),
        _("for %(span)s those that devices may be loading")
        % {"span": duration(LOADING.total_seconds())},
    ]
