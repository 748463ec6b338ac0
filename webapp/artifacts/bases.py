"""Trained models that collaborations may begin with: descriptions, and perhaps their files."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from trainer.bases import Kind as Place
from trainer.bases import describe, kind_of
from trainer.parts import Base, Precision
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.services import register_file
from webapp.artifacts.storage import absolute_path

log = logging.getLogger(__name__)


def add_base(folder: Path, *, title: str, at: str = "", precision: Precision = "fp32") -> Artifact:
    """Offers the base in `folder`. Its files become the site's, unless devices find them `at` an
    address or in the hub.

    Raises ValueError (NotABase among them) and OSError.
    """
    kind: Place = kind_of(at) if at else "site"
    base = describe(folder, kind, at, precision)
    if kind == "site":
        for file in base.files:
            register_file(folder / file.filename, Kind.WEIGHTS, title=f"{title}: {file.filename}")
    with tempfile.TemporaryDirectory() as drafts:
        draft = Path(drafts) / "base.json"
        draft.write_text(base.written(), encoding="utf-8")
        return register_file(draft, Kind.BASE, title=title)


def offered_bases() -> dict[str, tuple[str, Base]]:
    """{hash of the description: title, base}; those that are damaged on disk are left out."""
    found = {}
    for artifact in Artifact.objects.filter(kind=Kind.BASE).order_by("title", "pk"):
        try:
            base = Base.model_validate_json(absolute_path(artifact.path).read_bytes())
        except (OSError, ValueError) as error:
            log.warning("the base %s cannot be offered: %s", artifact, error)
        else:
            found[artifact.sha256] = str(artifact), base
    return found
