"""One collaboration in one web process: its board, what is news, and who looks on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from webapp.live.board import Board, Standing, changes
from webapp.live.facts import Facts
from webapp.live.mailbox import Mailbox

MOST_NEWS = 200
FRESH_S = 2.5


def as_text(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def compose(board: Board, facts: Facts, now: float) -> dict[str, Any]:
    """The public state, without what numbers a frame. With nobody online, the next round."""
    state = {**facts.shown, **board.snapshot(now, facts.names)}
    if not (state["online"] or state["coordinators"]) and facts.shown["last_round"]:
        state["round"] = facts.shown["last_round"]["round"] + 1
    return state


class Room:
    """`own` are the devices whose sockets end in this process; other processes tell of theirs."""

    def __init__(self, slug: str) -> None:
        self.slug = slug
        self.board = Board()
        self.own: set[str] = set()
        self.viewers: set[Mailbox] = set()
        self.facts: Facts | None = None
        self.facts_due = 0.0
        self.seq = 0
        self.at = 0.0
        self.shown: dict[str, Any] = {}
        self._rounds: dict[int, dict[str, Any]] = {}
        self._events: dict[int, dict[str, Any]] = {}

    def add_news(self, rounds: Iterable[dict[str, Any]], events: Iterable[dict[str, Any]]) -> None:
        """Of each round and event the last word counts; of a flood, the newest."""
        self._rounds |= {one["round"]: one for one in rounds}
        self._events |= {one["id"]: one for one in events}
        for news in (self._rounds, self._events):
            for key in sorted(news)[:-MOST_NEWS]:
                del news[key]
        if self.facts and self._rounds:
            self._note_last_round(self._rounds[max(self._rounds)])

    def renew(self, facts: Facts | None) -> None:
        """None: the collaboration was deleted, so its viewers are sent away."""
        if facts is None:
            for mailbox in self.viewers:
                mailbox.close(4404)
        self.facts = facts

    def own_standings(self) -> list[Standing]:
        held = self.board.standings
        return [held[device] for device in self.own if device in held]

    def _note_last_round(self, newest: dict[str, Any]) -> None:
        assert self.facts is not None
        held = self.facts.shown["last_round"]
        if held is None or newest["round"] >= held["round"]:
            shown = {**self.facts.shown, "last_round": newest}
            self.facts = Facts(shown=shown, names=self.facts.names)

    def advance(self, now: float) -> str | None:
        """Moves on by one frame and returns its text; None before the facts are known."""
        if self.facts is None:
            return None
        state = compose(self.board, self.facts, now)
        patch = changes(self.shown, state)
        self.seq, self.at, self.shown = self.seq + 1, now, state
        frame = {"kind": "frame", "seq": self.seq, "at": round(now, 3), **patch}
        if self._rounds:
            frame["new_rounds"] = [self._rounds[key] for key in sorted(self._rounds)]
        if self._events:
            frame["new_events"] = [self._events[key] for key in sorted(self._events)]
        self._rounds, self._events = {}, {}
        return as_text(frame)

    def snapshot(self, now: float) -> dict[str, Any] | None:
        """The state after the last frame; a new one where no frame was made lately."""
        if self.facts is None:
            return None
        if now - self.at > FRESH_S:
            self.shown, self.at = compose(self.board, self.facts, now), now
        return {"kind": "snapshot", "seq": self.seq, "at": round(self.at, 3), **self.shown}

    @property
    def is_idle(self) -> bool:
        return not (self.viewers or self.own or self.board.standings)
