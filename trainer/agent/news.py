"""What a coordinator asks the site again and again, and passes on to its swarm."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from trainer.launcher import web
from trainer.wire import Role

ASK_EVERY_S = 10.0
log = logging.getLogger(__name__)
Reply = TypeVar("Reply")


class News(Generic[Reply]):
    """The newest answer to one question, None before the first; an old one is kept."""

    def __init__(self, what: str, ask: Callable[[], Reply]) -> None:
        self._what, self._ask = what, ask
        self._newest: Reply | None = None

    def __call__(self) -> Reply | None:
        return self._newest

    def ask(self) -> None:
        try:
            self._newest = self._ask()
        except (web.Unreachable, web.Refusal) as error:
            log.info("%s stays as it is: %s", self._what, error)


def follow(what: str, ask: Callable[[], Reply], role: Role) -> News[Reply]:
    """Asks as long as the process lives; others than coordinators never."""
    news = News(what, ask)

    def go_on() -> None:
        while True:
            news.ask()
            time.sleep(ASK_EVERY_S)

    if role is Role.COORDINATOR:
        threading.Thread(target=go_on, name=what, daemon=True).start()
    return news
