"""The organisers' console: what must I decide now? Reading; the acts are in console_acts.py,
the form is in console_draft.py."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from webapp.accounts.selectors import people as everybody
from webapp.audit.selectors import entries
from webapp.collaborations.models import State
from webapp.collaborations.selectors import version_of, visible_collaborations
from webapp.collaborations.sizes import size_of
from webapp.collaborations.states import MOVES
from webapp.collaborations.text_addresses import addresses
from webapp.credit.data_shares import data_shares
from webapp.credit.own_losses import spread_of
from webapp.devices.selectors import coordinator_failure, devices_in
from webapp.live.selectors import snapshot
from webapp.pages.acts import organisers_only
from webapp.pages.collaboration import find
from webapp.pages.live_view import sentence
from webapp.shards.selectors import how_far


@require_safe
@organisers_only
def show(request: HttpRequest) -> HttpResponse:
    rows = []
    for collaboration in visible_collaborations(request.user):
        now = snapshot(collaboration)
        rows.append((collaboration, now, sentence(now)))
    return render(request, "console.html", {"rows": rows})


@require_safe
@organisers_only
def collaboration(request: HttpRequest, slug: str) -> HttpResponse:
    found = find(request, slug)
    after = MOVES[State(found.state)]
    now = snapshot(found)
    recipe = found.recipe
    size = size_of(recipe)
    is_alive = State.FINISHED in after
    return render(
        request,
        "console_collaboration.html",
        {
            "collaboration": found,
            "size": size,
            "ten_devices_bytes": 10 * size.coordinator_bytes,
            "addresses": addresses(recipe),
            "hold_ups": hold_ups(now),
            "failure": coordinator_failure(found, now=timezone.now()) if is_alive else "",
            "recipe_json": recipe.model_dump_json(indent=2),
            "snapshot": now,
            "sentence": sentence(now),
            "devices": devices_in(found),
            "data_shares": data_shares(found),
            "participation": recipe.participation,
            "own_losses": spread_of(found) if recipe.is_private else None,
            "readings": how_far(found, now=timezone.now()),
            "version": version_of(found),
            "may_open": found.state == State.DRAFT,
            "may_pause": State.PAUSED in after,
            "may_resume": found.state == State.PAUSED,
            "may_finish": is_alive,
        },
    )


def hold_ups(snapshot: dict[str, Any]) -> list[tuple[str, int]]:
    """What devices wait for, in their own words, and how many of them; the most frequent first."""
    reasons = (member["reason"] for member in snapshot["members"] if member["reason"])
    return Counter(reasons).most_common()


@require_safe
@organisers_only
def people(request: HttpRequest) -> HttpResponse:
    query = request.GET.get("q", "").strip()
    page = everybody(query, request.GET.get("page", 1))
    return render(request, "console_people.html", {"page": page, "query": query})


@require_safe
@organisers_only
def audit(request: HttpRequest) -> HttpResponse:
    page = entries(request.GET.get("page", 1))
    return render(request, "console_audit.html", {"page": page})
