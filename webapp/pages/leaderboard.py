"""Who helped, and where am I?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from webapp.collaborations.selectors import visible_collaborations
from webapp.credit import selectors
from webapp.pages.collaboration import find

MEASURES = [("samples", _("By samples")), ("rounds", _("By rounds"))]
PERIODS = [("24h", _("24 hours")), ("7d", _("7 days")), ("all", _("All time"))]


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    period = request.GET.get("period", "7d")
    if period not in selectors.PERIODS:
        period = "7d"
    by = request.GET.get("by", "samples")
    if by not in selectors.MEASURES:
        by = "samples"
    slug = request.GET.get("collaboration", "")
    collaboration = find(request, slug) if slug else None
    page = request.GET.get("page", 1)
    board = selectors.leaderboard(period, collaboration, request.user, page, by)
    most = getattr(board.rows[0], by) if board.rows else 0
    return render(
        request,
        "leaderboard.html",
        {
            "board": board,
            "rows": [
                (place, round(100 * getattr(place, by) / max(most, 1))) for place in board.rows
            ],
            "by": by,
            "measures": MEASURES,
            "period": period,
            "periods": PERIODS,
            "collaboration": collaboration,
            "collaborations": visible_collaborations(request.user),
            "more": f"period={period}&by={by}" + (f"&collaboration={slug}" if slug else ""),
        },
    )
