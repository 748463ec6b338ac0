"""Registers files under their hash, and keeps the last few checkpoints."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from django.db import transaction

from trainer.wire import CheckpointWritten
from webapp.artifacts import storage
from webapp.artifacts.models import Artifact, Checkpoint, Kind
from webapp.collaborations.models import Collaboration
from webapp.core.errors import UserError
from webapp.core.text import one_line

KEPT_CHECKPOINTS = 5
FILENAME = re.compile(r"[A-Za-z0-9._-]{1,120}")


def register_file(
    path: Path,
    kind: Kind | str,
    *,
    title: str = "",
    credit: str = "",
    vocab_size: int | None = None,
    filename: str | None = None,
) -> Artifact:
    """The artifact with the content of `path`; the same content twice is one artifact.

    `filename` is what downloads are called (default: the name of `path`). Raises
    FileNotFoundError, and ValueError on a file name that is not plain.
    """
    filename = filename or path.name
    if not FILENAME.fullmatch(filename):
        raise ValueError(f"{filename!r} is not a plain file name")
    sha256 = storage.sha256_of(path)
    artifact, _ = Artifact.objects.get_or_create(
        sha256=sha256,
        defaults={
            "kind": kind,
            "size_bytes": path.stat().st_size,
            "filename": filename,
            "path": storage.keep(path, sha256),
            "title": one_line(title, 120),
            "credit": credit,
            "vocab_size": vocab_size,
        },
    )
    return artifact


@transaction.atomic
def register_checkpoint(
    collaboration: Collaboration, written: CheckpointWritten, folder: Path
) -> Checkpoint:
    """Takes over the file that the coordinator wrote into `folder`.

    Raises UserError when it is missing or is not what was announced; nothing is kept then.
    """
    known = Checkpoint.objects.filter(
        collaboration=collaboration, artifact__sha256=written.sha256
    ).first()
    if known is not None:
        return known
    path = folder / written.filename
    _check_file(path, written)
    artifact = register_file(path, Kind.CHECKPOINT, title=f"{collaboration.slug} {written.round}")
    checkpoint = Checkpoint.objects.create(
        collaboration=collaboration, artifact=artifact, round=written.round, loss=written.loss
    )
    _retire_old(collaboration)
    return checkpoint


def _check_file(path: Path, written: CheckpointWritten) -> None:
    if not path.is_file():
        raise UserError(f"The checkpoint of round {written.round}, {path.name}, is missing.")
    size_bytes = path.stat().st_size
    if size_bytes != written.size_bytes:
        raise UserError(
            f"The checkpoint of round {written.round} has {size_bytes} bytes, "
            f"not the {written.size_bytes} announced: it was refused."
        )
    if storage.sha256_of(path) != written.sha256:
        raise UserError(
            f"The checkpoint of round {written.round} has another hash than announced: "
            "it was refused."
        )


def _retire_old(collaboration: Collaboration) -> None:
    for old in collaboration.checkpoints.select_related("artifact")[KEPT_CHECKPOINTS:]:
        relative = old.artifact.path
        old.artifact.delete()  # its checkpoint row goes with it
        transaction.on_commit(partial(storage.forget, relative))
