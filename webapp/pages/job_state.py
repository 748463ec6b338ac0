"""How the state of an organiser's job looks: (tone, glyph)."""

from __future__ import annotations

from webapp.core.jobs import State

LOOKS = {
    State.WAITING: ("idle", "idle"),
    State.RUNNING: ("ok", "ok"),
    State.FINISHED: ("ok", "done"),
    State.FAILED: ("bad", "bad"),
    State.CANCELLED: ("idle", "pause"),
}
