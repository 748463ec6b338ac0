"""`manage.py add_file text|tokenizer FILE`: a file of the site, for organisers' forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from trainer.sources.base import SourceUnavailable
from trainer.sources.kinds import check_text
from webapp.artifacts.models import Kind
from webapp.artifacts.services import register_file
from webapp.artifacts.tokens import tokens_in


class Command(BaseCommand):
    help = "Offers a text (a document a line, plain or JSON) or a tokenizer.json to organisers."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=[Kind.TEXT.value, Kind.TOKENIZER.value])
        parser.add_argument("file", type=Path)
        parser.add_argument("--title", default="", help="default: the file's name")
        parser.add_argument("--credit", default="", help="whose text it is, and its licence")

    def handle(self, *args: Any, **given: Any) -> None:
        file: Path = given["file"]
        try:
            if not file.stat().st_size:
                raise ValueError("it is empty")
            if given["kind"] == Kind.TEXT:
                check_text(file)
            artifact = register_file(
                file,
                given["kind"],
                title=given["title"] or file.name,
                credit=given["credit"],
                vocab_size=tokens_in(file) if given["kind"] == Kind.TOKENIZER else None,
            )
        except SourceUnavailable as error:
            raise CommandError(f"{error}.") from error
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise CommandError(f"{file} cannot be offered: {error}") from error
        self.stdout.write(f"{artifact} is offered ({artifact.sha256}).")
