"""`manage.py demo`: seeds the demo collaboration without starting anything."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from webapp.ops import demo, organiser


class Command(BaseCommand):
    help = "Creates and opens the demo collaboration; does nothing when it is there."

    def handle(self, *args: object, **options: object) -> None:
        if credentials := organiser.make_first():
            self.stdout.write(str(credentials))
        collaboration = demo.seed()
        self.stdout.write(f"{collaboration.title} is {collaboration.state}.")
