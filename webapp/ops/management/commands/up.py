"""`manage.py up`: the whole site in one terminal."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.ops.embedded import CannotEmbed
from webapp.ops.instance import CannotStart, check_port, claim, keep_files_private, raise_file_limit
from webapp.ops.supervisor import Supervisor, Switches


class Command(BaseCommand):
    help = "Starts Valkey, the web process, the worker and the coordinator, and keeps them running."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="seed no demo collaboration")
        parser.add_argument("--no-volunteer", action="store_true", help="start no demo volunteer")

    def handle(self, *args: object, no_demo: bool, no_volunteer: bool, **options: object) -> None:
        try:
            with claim(settings.DATA_DIR, settings.SITE_URL):
                check_port(settings.HTTP_HOST, settings.HTTP_PORT)
                raise_file_limit()
                keep_files_private(settings.DATA_DIR)
                switches = Switches(with_demo=not no_demo, with_volunteer=not no_volunteer)
                sys.exit(asyncio.run(self._supervise(switches)))
        except (CannotStart, CannotEmbed) as error:
            raise CommandError(str(error)) from error

    async def _supervise(self, switches: Switches) -> int:
        return await Supervisor(switches).run()
