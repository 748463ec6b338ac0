"""Keeps one coordinator process for each collaboration that is open, running or paused."""

from __future__ import annotations

import logging
import threading
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections

from webapp.artifacts.storage import checkpoint_folder
from webapp.collaborations.models import Collaboration, State
from webapp.collaborations.services import coordinator_device
from webapp.swarm.child import Child, end_leftover

LOOK_EVERY_S = 1.0
LEAVE_S = 45.0  # a finished collaboration's coordinator sees the last peers off and ends by itself
ALIVE = (State.OPEN, State.RUNNING, State.PAUSED)
log = logging.getLogger(__name__)


class Coordinators:
    def __init__(self) -> None:
        self._root = settings.DATA_DIR / "coordinators"
        self._children: dict[str, Child] = {}
        self._recipes: dict[str, str] = {}
        self._has_database = True

    def run(self, stopping: threading.Event) -> None:
        """Until `stopping` is set; returns when every child has ended."""
        for folder in self._root.glob("*/"):
            if end_leftover(folder):
                log.warning("ended the coordinator of %s that an earlier run left", folder.name)
        while not stopping.is_set():
            self._look()
            stopping.wait(LOOK_EVERY_S)
        while any(child.is_alive for child in self._children.values()):
            for child in self._children.values():
                child.ask_to_stop()
            threading.Event().wait(0.1)
        for child in self._children.values():
            child.reap()

    def _look(self) -> None:
        """Compares what is there with what should be. Without a database all stays as it is."""
        close_old_connections()
        try:
            wanted = {one.slug: one for one in Collaboration.objects.filter(state__in=ALIVE)}
            self._stop_unwanted(wanted)
            for collaboration in wanted.values():
                self._keep(collaboration)
        except DatabaseError as error:
            if self._has_database:
                log.warning("the database does not answer (%s); coordinators carry on", error)
            self._has_database = False
        else:
            self._has_database = True

    def _stop_unwanted(self, wanted: dict[str, Collaboration]) -> None:
        for slug, child in list(self._children.items()):
            code = child.reap()
            if code is not None:
                log.log(
                    logging.INFO if code == 0 else logging.WARNING,
                    "the coordinator of %s ended with code %d", slug, code,
                )  # fmt: skip
            if slug in wanted:
                continue
            child.ask_to_stop(grace_s=LEAVE_S)
            if not child.is_alive:
                del self._children[slug]

    def _keep(self, collaboration: Collaboration) -> None:
        slug = collaboration.slug
        child = self._children.setdefault(slug, Child(slug, self._root / slug))
        sha256 = collaboration.revision.sha256
        if child.may_start:
            child.start(config_of(collaboration))
            self._recipes[slug] = sha256
            log.info("started the coordinator of %s on port %d", slug, collaboration.swarm_port)
        elif child.is_alive and self._recipes[slug] != sha256:
            child.ask_to_stop()  # the recipe changed: it starts again with the new one


def config_of(collaboration: Collaboration) -> dict[str, Any]:
    """What `python -m trainer coordinate` reads. Holds a fresh token: the old one is worthless."""
    _, token = coordinator_device(collaboration)
    folder = settings.DATA_DIR / "coordinators" / collaboration.slug
    return {
        "site": settings.SITE_URL,
        "token": token,
        "collaboration": collaboration.slug,
        "folder": str(folder),
        "checkpoint_folder": str(checkpoint_folder(collaboration.slug)),
        "listen_address": f"/ip4/0.0.0.0/tcp/{collaboration.swarm_port}",
        "announce_host": settings.SWARM_HOST,
    }
