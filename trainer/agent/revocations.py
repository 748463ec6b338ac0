"""What the site's revocation list says now; a coordinator passes it on to its swarm."""

from __future__ import annotations

import logging
import threading
import time

from trainer.agent.join import Api
from trainer.launcher import web
from trainer.passport import RevocationList
from trainer.wire import Role

ASK_EVERY_S = 10.0
log = logging.getLogger(__name__)


class RevocationHolder:
    """The newest list that the site gave, None before the first; an old one is kept."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._newest: RevocationList | None = None

    def __call__(self) -> RevocationList | None:
        return self._newest

    def ask(self) -> None:
        try:
            self._newest = self._api.revocations()
        except (web.Unreachable, web.Refusal) as error:
            log.info("the revocation list stays as it is: %s", error)


def follow_revocations(api: Api, role: Role) -> RevocationHolder:
    """Asks again and again, as long as the process lives; others than coordinators never."""
    holder = RevocationHolder(api)

    def follow() -> None:
        while True:
            holder.ask()
            time.sleep(ASK_EVERY_S)

    if role is Role.COORDINATOR:
        threading.Thread(target=follow, name="revocations", daemon=True).start()
    return holder
