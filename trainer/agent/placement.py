"""A device whose owner picked no collaboration: the site gives it one, and another one later."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from trainer.agent.join import Api
from trainer.agent.wishes import Wishes
from trainer.grant import Placed
from trainer.launcher import web

ASK_EVERY_S = 45.0
log = logging.getLogger(__name__)


def wait_for_place(site: str, token: str, pause: Callable[[float], None] = time.sleep) -> str:
    """The collaboration that the site gives the device; waits as long as there is none for it.

    Raises web.Refusal when the site does not take the device.
    """
    told = ""
    while True:
        words = ""
        try:
            placed = Api(site, token).placement()
            if placed.collaboration:
                print(f"The site gave this device {in_words(placed)}", flush=True)
                return placed.collaboration
            words = placed.reason
        except (web.Unreachable, web.Damaged) as error:
            words = str(error)
        if words != told:
            print(f"{words} It goes on asking.", flush=True)
            told = words
        pause(_wait_s())


def in_words(placed: Placed) -> str:
    return f"{placed.title}. {placed.reason}"


def _wait_s() -> float:
    """Spread, so that devices do not all ask together."""
    return ASK_EVERY_S * random.uniform(0.7, 1.3)  # noqa: S311


class Mover:
    """While the site pauses the collaboration, asks it for another one; then the agent starts anew
    there, with its round handed in."""

    def __init__(
        self, api: Api, slug: str, wishes: Wishes, wait_s: Callable[[], float] = _wait_s
    ) -> None:
        self._api, self._slug, self._wishes, self._wait_s = api, slug, wishes, wait_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mover", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._wait_s()):
            if not self._wishes.is_paused_by_site:
                continue
            try:
                placed = self._api.placement()
            except (web.Unreachable, web.Damaged, web.Refusal) as error:
                log.info("asked for another collaboration: %s", error)
                continue
            if placed.collaboration not in ("", self._slug):
                self._wishes.start_again(f"It moves on to {in_words(placed)}")
                return
