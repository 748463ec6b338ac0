"""`manage.py coordinator`: the site's own peers, one process for each living collaboration."""

from __future__ import annotations

import logging
import signal
import threading

from django.conf import settings
from django.core.management.base import BaseCommand

from webapp.core.checks import PUBLIC, how_to_widen, reach_of
from webapp.swarm.coordinators import Coordinators


class Command(BaseCommand):
    help = "Keeps one coordinator process for each open, running or paused collaboration."
    requires_system_checks = []

    def handle(self, *args: object, **options: object) -> None:
        stopping = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        if reach_of(settings.SWARM_HOST) != PUBLIC:
            logging.getLogger(__name__).info(
                "The swarm at %s is reachable from %s. %s",
                settings.SWARM_HOST,
                reach_of(settings.SWARM_HOST),
                how_to_widen(),
            )
        Coordinators().run(stopping)
