"""The engine's port to the world: what it reports goes to the screen, to disk and to the site."""

from __future__ import annotations

from trainer.agent.link import Link
from trainer.agent.spool import Spool
from trainer.agent.view import View
from trainer.wire import Body, Progress, Receipt, RoundSeen


class Outbox:
    """`num_rounds` ended so far; `last_words` say why the engine does what it did last."""

    def __init__(self, spool: Spool, link: Link, view: View) -> None:
        self._spool, self._link, self._view = spool, link, view
        self._trouble = ""
        self.num_rounds = 0
        self.last_words = ""

    def progress(self, message: Progress) -> None:
        self.last_words = message.reason
        self._view.show_progress(message)
        self._link.progress(message)

    def report(self, body: Body) -> None:
        self._spool.add(body)
        self._link.wake()
        self.num_rounds += isinstance(body, Receipt | RoundSeen)
        if self._spool.trouble != self._trouble:
            self._trouble = self._spool.trouble
            self._view.say(self._trouble or "Reports are written to disk again.")
        if isinstance(body, Receipt):
            self._view.show_receipt(body)
