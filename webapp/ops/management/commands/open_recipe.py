"""`manage.py open_recipe [NAME]`: opens the collaboration of a ready recipe, or lists them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from webapp.core.errors import UserError
from webapp.ops import organiser
from webapp.recipes import ready, tasks
from webapp.recipes.opening import open_ready


class Command(BaseCommand):
    help = (
        "Opens the collaboration that a recipe of recipes/ describes; without a name, lists them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", default="", help="of a file in recipes/")
        parser.add_argument("--offline", action="store_true", help="its form without a hub")
        parser.add_argument("--slug", default="", help="another short name for its address")

    def handle(self, *args: Any, name: str, offline: bool, slug: str, **options: Any) -> None:
        try:
            if name:
                self._open(name, offline, slug)
            else:
                self._list()
        except UserError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(
                f"The database cannot be used ({error}): start the site once with manage.py up, "
                "or run manage.py migrate."
            ) from error

    def _list(self) -> None:
        """A file that is no recipe is told as such, and the others are listed."""
        for name in ready.names():
            try:
                found = ready.read(name)
            except UserError as error:
                self.stdout.write(f"{name:16}cannot be opened: {error}")
                continue
            form = ""
            if found.needs_a_hub:
                form = " (needs a hub" + ("; --offline does not)" if found.offline else ")")
            self.stdout.write(f"{name:16}{found.title}{form}")

    def _open(self, name: str, offline: bool, slug: str) -> None:
        found = ready.read(name, offline=offline)
        if credentials := organiser.make_first():
            self.stdout.write(str(credentials))
        collaboration, is_new = open_ready(
            found, by=organiser.first(), slug=slug, tell=self.stdout.write
        )
        address = f"{settings.SITE_URL}/c/{collaboration.slug}/"
        words = "is open" if is_new else f"was there already, and is {collaboration.state}"
        self.stdout.write(f"{collaboration.title} {words}: {address}")
        for title, place in tasks.missing(collaboration):
            self.stdout.write(f"To evaluate with {title}, put its data here: {place}")
