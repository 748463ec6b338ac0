"""What the volunteer wants and what the site wants, kept apart; the stronger of the two counts.

The volunteer's wish is on disk, so that pause and finish outlive a restart. A stop by signal, a
ban or a newer-agent-needed is for this session only and is never written down.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

from trainer.launcher.place import Unusable, write_whole
from trainer.wire import Control, LeaveCause, Wish

log = logging.getLogger(__name__)
STRENGTH = {Wish.RUN: 0, Wish.PAUSE: 1, Wish.FINISH: 2, Wish.STOP: 3}
SHUT_OUT = (LeaveCause.REVOKED, LeaveCause.BANNED)
OWN_WORDS = {
    Wish.RUN: "",
    Wish.PAUSE: "Its owner paused it.",
    Wish.FINISH: "You asked to finish this round and leave.",
}


class Wishes:
    """The engine's `Wishes` port. All methods may be called from any thread or signal handler."""

    def __init__(self, path: Path, changed: Callable[[Control], None] = lambda control: None):
        self._path = path
        self._changed = changed
        self._stop: Control | None = None
        self._again: list[Control] = []
        self._site = Control(wish=Wish.RUN)
        self._own = self._read()
        self._told = self.current()

    def _read(self) -> Wish:
        try:
            return Wish(json.loads(self._path.read_text(encoding="utf-8"))["wish"])
        except FileNotFoundError:
            return Wish.RUN
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s is damaged (%s): your wish is taken as run", self._path.name, error)
            return Wish.RUN

    def current(self) -> Control:
        if self._stop:
            return self._stop
        own = Control(wish=self._own, reason=OWN_WORDS[self._own])
        return max([self._site, own, *self._again], key=lambda control: STRENGTH[control.wish])

    @property
    def shut_out(self) -> bool:
        """Whether the site said that this device may not come back."""
        return self.current().cause in SHUT_OUT

    def volunteer(self, wish: Wish) -> None:
        """The volunteer's own wish: run, pause or finish. Kept even when the disk is full."""
        self._own = wish
        try:
            write_whole(self._path, json.dumps({"wish": wish}))
        except Unusable as error:
            log.warning("your wish is kept in memory only: %s", error)
        self._tell()

    @property
    def is_paused_here(self) -> bool:
        return self._own is Wish.PAUSE

    @property
    def is_paused_by_site(self) -> bool:
        """And by nobody else: its owner's pause goes with it wherever it is."""
        return self._site.wish is Wish.PAUSE and self._own is Wish.RUN

    @property
    def is_over(self) -> bool:
        """Whether the collaboration has come to its end, and that is why the agent leaves."""
        ended = self._site.cause in (LeaveCause.FINISHED, LeaveCause.FAILED)
        return ended and self.current() == self._site

    def toggle_pause(self) -> None:
        """The volunteer's key. Not while it stops: a slip would be kept for the next start."""
        if self.current().wish is not Wish.STOP:
            self.volunteer(Wish.RUN if self.is_paused_here else Wish.PAUSE)

    def site(self, control: Control) -> None:
        self._site = control
        self._tell()

    def stop(self, reason: str, cause: LeaveCause = LeaveCause.STOPPED) -> None:
        """Ends this session; the first reason stays, but that of a restart gives way.

        Signal handlers may call it.
        """
        if self._stop is None or self._stop.cause is LeaveCause.RESTARTING:
            self._stop = Control(wish=Wish.STOP, reason=reason[:300], cause=cause)
            self._tell()

    def start_again(self, reason: str) -> None:
        """Ends this session with its round; the agent then starts again by itself."""
        control = Control(wish=Wish.FINISH, reason=reason[:300], cause=LeaveCause.RESTARTING)
        self._again = [control]
        self._tell()

    def _tell(self) -> None:
        now = self.current()
        if now != self._told:
            self._told = now
            self._changed(now)
