"""Home: what this is, whether anything is running, how to help."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.collaborations.models import Collaboration, State
from webapp.collaborations.selectors import visible_collaborations
from webapp.collaborations.states import LIVE
from webapp.credit.selectors import leaderboard
from webapp.live.selectors import snapshot
from webapp.pages.live_view import live_view

THANKED = 24


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    busiest = _busiest()
    view = live_view(request, busiest) if busiest else {}
    board = leaderboard("7d", viewer=None)
    return render(request, "home.html", view | {"helpers": board.rows[:THANKED], "board": board})


def _busiest() -> Collaboration | None:
    """The one with most peers; without any, the newest that runs, else the newest to be seen."""
    seen = visible_collaborations().exclude(state=State.FAILED)
    living = list(seen.filter(state__in=LIVE)[:20])
    if living:
        return max(living, key=lambda one: (snapshot(one)["peers"], one.state == State.RUNNING))
    return seen.first()
