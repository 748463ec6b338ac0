"""`manage.py add_base FOLDER`: a trained model, and its tokenizer, for the organiser's form."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from trainer.parts import Precision
from webapp.artifacts.bases import add_base
from webapp.artifacts.models import Kind
from webapp.artifacts.services import register_file


class Command(BaseCommand):
    help = "Offers a model that save_pretrained wrote, and its tokenizer, in the organiser's form."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--title", default="", help="default: the folder's name")
        parser.add_argument(
            "--at", default="", help="where devices find it, if not here: https://…, or ORG/NAME"
        )
        parser.add_argument(
            "--precision", choices=get_args(Precision), default="fp32", help="where it is frozen"
        )

    def handle(self, *args: Any, **given: Any) -> None:
        folder: Path = given["folder"]
        title = given["title"] or folder.resolve().name
        tokenizer = folder / "tokenizer.json"
        size = _vocabulary(tokenizer) if tokenizer.is_file() else 0
        try:
            base = add_base(folder, title=title, at=given["at"], precision=given["precision"])
        except OSError as error:
            raise CommandError(f"{folder} cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise CommandError(f"{folder} is no base: {error}") from error
        if not size:
            self.stdout.write(f"{base} is offered; there is no tokenizer.json beside it.")
            return
        known = register_file(
            tokenizer, Kind.TOKENIZER, title=f"{title} (tokenizer)", vocab_size=size
        )
        self.stdout.write(f"{base} is offered, and its tokenizer of {size:,} tokens, {known}.")


def _vocabulary(path: Path) -> int:
    """How many tokens a tokenizer has. Raises CommandError when it is none."""
    from tokenizers import Tokenizer

    try:
        return int(Tokenizer.from_file(str(path)).get_vocab_size())
    except Exception as error:  # the library raises this class itself
        raise CommandError(f"{path} is no tokenizer: {error}") from error
