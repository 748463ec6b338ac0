"""The private frames of logged-in people: what their own devices do now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from webapp.live.board import Standing
from webapp.live.mailbox import PrivateMailbox
from webapp.live.rooms import Room, as_text

LONGEST_SILENCE_S = 10.0


def offer_private(people: Iterable[PrivateMailbox], rooms: Mapping[str, Room], now: float) -> None:
    """Gives each person their devices' states where these changed, and now and then anyway."""
    people = list(people)
    if not people:
        return
    owned: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for slug, room in rooms.items():
        for standing in room.board.living(now):
            owned[standing.owner].append(_row(slug, standing))
    for mailbox in people:
        rows = owned.get(mailbox.user_id, [])
        state = as_text({"devices": rows})
        if state == mailbox.shown and now - mailbox.shown_at < LONGEST_SILENCE_S:
            continue
        mailbox.seq += 1
        mailbox.shown, mailbox.shown_at = state, now
        frame = {"kind": "me", "seq": mailbox.seq, "at": round(now, 3), "devices": rows}
        mailbox.offer(as_text(frame))


def _row(slug: str, standing: Standing) -> dict[str, Any]:
    said = standing.progress
    return {
        "device": standing.device,
        "collaboration": slug,
        "activity": str(said.activity),
        "reason": said.reason,
        "round": said.round,
        "samples": said.samples,
        "samples_per_s": round(said.samples_per_s, 2),
    }
