"""What the first paint of a live page holds: the same documents that the socket sends later."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from webapp.collaborations.models import Collaboration
from webapp.core.phrases import PHRASES
from webapp.live import selectors

STRIP_LENGTH = 40
EVENTS_SHOWN = 50
TONES = {
    "draft": ("idle", "idle"),
    "open": ("idle", "idle"),
    "running": ("ok", "ok"),
    "alone": ("ok", "ok"),
    "nobody": ("warn", "idle"),
    "short": ("warn", "idle"),
    "paused": ("idle", "pause"),
    "finished": ("ok", "done"),
    "failed": ("bad", "bad"),
}


def sentence(snapshot: dict[str, Any]) -> dict[str, str]:
    """The state in words, always with its reason; `static/js/collaboration.js` says the same."""
    key = snapshot["state"]
    if key == "running" and not snapshot["online"]:
        key = "nobody"
    elif key == "running" and snapshot["online"] < snapshot["least"]:
        key = "short"
    elif key == "running" and snapshot["peers"] == snapshot["online"] == 1:
        key = "alone"
    tone, glyph = TONES[key]
    why = snapshot["state_reason"] or str(PHRASES[f"why_{key}"]).format(least=snapshot["least"])
    return {"words": str(PHRASES[f"state_{key}"]), "why": why, "tone": tone, "glyph": glyph}


def live_view(request: HttpRequest, collaboration: Collaboration) -> dict[str, Any]:
    """Context of `templates/parts/live.html` and what is under it."""
    slug = collaboration.slug
    snapshot = selectors.snapshot(collaboration)
    return {
        "collaboration": collaboration,
        "snapshot": snapshot,
        "sentence": sentence(snapshot),
        "rounds": selectors.rounds(collaboration, STRIP_LENGTH),
        "events": selectors.events(collaboration, viewer=request.user, newest=EVENTS_SHOWN),
        "total_rounds": collaboration.recipe.finish.rounds,
        "api": f"/api/v1/collaborations/{slug}",
        "socket": f"/ws/c/{slug}/",
        "csv": f"/api/v1/collaborations/{slug}/history.csv",
        "join_url": reverse("pages:join", args=[slug]),
    }
