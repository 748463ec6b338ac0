"""`manage.py up`: the whole site in one terminal."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.ops.embedded import CannotEmbed
from webapp.ops.instance import CannotStart, check_port, claim, keep_files_private, raise_file_limit
from webapp.ops.supervisor import Supervisor, Switches


class Command(BaseCommand):
    help = "Starts Valkey, the web process, the worker and the coordinator, and keeps them running."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--recipe", default=Switches.recipe, help="of recipes/, whose collaboration is opened"
        )
        parser.add_argument("--offline", action="store_true", help="in its form without a hub")
        parser.add_argument("--no-demo", action="store_true", help="open no recipe")
        parser.add_argument(
            "--volunteers", type=int, default=1, metavar="N", help="devices of this machine for it"
        )
        parser.add_argument("--no-volunteer", action="store_true", help="start none")

    def handle(self, *args: object, **given: Any) -> None:
        try:
            with claim(settings.DATA_DIR, settings.SITE_URL):
                check_port(settings.HTTP_HOST, settings.HTTP_PORT)
                raise_file_limit()
                keep_files_private(settings.DATA_DIR)
                switches = Switches(
                    recipe="" if given["no_demo"] else given["recipe"],
                    offline=given["offline"],
                    volunteers=0 if given["no_volunteer"] else given["volunteers"],
                )
                sys.exit(asyncio.run(self._supervise(switches)))
        except (CannotStart, CannotEmbed) as error:
            raise CommandError(str(error)) from error

    async def _supervise(self, switches: Switches) -> int:
        return await Supervisor(switches).run()
