"""Texts of the site, and tokenizers that are made of them."""

from __future__ import annotations

from pathlib import Path

import psutil
from django.utils import timezone

from trainer.tokenizing import Wanted
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.services import register_file
from webapp.tokenizers import services
from webapp.tokenizers.models import Making


def add_text(folder: Path, name: str, content: str | bytes) -> Artifact:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return register_file(folder / name, Kind.TEXT, title=name)


def claimed(*texts: Artifact, **wanted) -> Making:
    """One that a job has begun."""
    making = Making.objects.create(
        title="Ours", plan=Wanted(**({"size": 400} | wanted)).model_dump(mode="json")
    )
    making.texts.set(texts)
    found = services.claim(timezone.now())
    assert found is not None
    return found


def programs() -> list[psutil.Process]:
    """Tokenizers that this process is still having made."""
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "tokenizer" in one.cmdline()]
