"""The list: which collaboration needs me?"""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.collaborations import access
from webapp.collaborations.selectors import visible_collaborations
from webapp.live import selectors
from webapp.pages.live_view import STRIP_LENGTH, sentence

PAGE_SIZE = 20
SPARK_WIDTH, SPARK_HEIGHT = 160, 36


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    pages = Paginator(visible_collaborations(request.user), PAGE_SIZE)
    page = pages.get_page(request.GET.get("page"))
    rows = []
    for collaboration in page:
        snapshot = selectors.snapshot(collaboration)
        rounds = selectors.rounds(collaboration, STRIP_LENGTH)
        losses = [each["loss"] for each in rounds if each["loss"] is not None]
        refusal = access.refusal(request.user, "join", collaboration)
        rows.append(
            {
                "collaboration": collaboration,
                "snapshot": snapshot,
                "sentence": sentence(snapshot),
                "spark": sparkline(losses),
                "loss": losses[-1] if losses else None,
                "may_join": not refusal or not request.user.is_authenticated,
            }
        )
    return render(request, "collaborations.html", {"page": page, "rows": rows})


def sparkline(values: list[float]) -> str:
    """Points of an SVG polyline; empty below two values."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = SPARK_WIDTH / (len(values) - 1)
    return " ".join(
        f"{place * step:.1f},{2 + (high - value) / span * (SPARK_HEIGHT - 4):.1f}"
        for place, value in enumerate(values)
    )
