"""Who helped, and where am I?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from webapp.collaborations.selectors import visible_collaborations
from webapp.credit import selectors
from webapp.pages.collaboration import find

PERIODS = [("24h", _("24 hours")), ("7d", _("7 days")), ("all", _("All time"))]


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    period = request.GET.get("period", "7d")
    if period not in selectors.PERIODS:
        period = "7d"
    slug = request.GET.get("collaboration", "")
    collaboration = find(request, slug) if slug else None
    board = selectors.leaderboard(period, collaboration, request.user, request.GET.get("page", 1))
    most = board.rows[0].samples if board.rows else 0
    return render(
        request,
        "leaderboard.html",
        {
            "board": board,
            "rows": [(place, round(100 * place.samples / most)) for place in board.rows],
            "period": period,
            "periods": PERIODS,
            "collaboration": collaboration,
            "collaborations": visible_collaborations(request.user),
            "more": f"period={period}" + (f"&collaboration={slug}" if slug else ""),
        },
    )
