"""Registers files under their hash, and lets go of checkpoints."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from django.db import transaction
from django.db.models import Q

from trainer.wire import CheckpointWritten
from webapp.artifacts import storage
from webapp.artifacts.models import OF_CHECKPOINTS, Artifact, Checkpoint, Kind
from webapp.collaborations.models import Collaboration
from webapp.core.errors import UserError
from webapp.core.text import one_line

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
    """The artifact with the content of `path`; the same content twice is one artifact, which does
    not go with a checkpoint if it is offered as something else, too.

    `filename` is what downloads are called (default: the name of `path`). Raises
    FileNotFoundError, and ValueError on a file name that is not plain.
    """
    filename = filename or path.name
    if not FILENAME.fullmatch(filename):
        raise ValueError(f"{filename!r} is not a plain file name")
    sha256 = storage.sha256_of(path)
    artifact, is_new = Artifact.objects.get_or_create(
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
    if not is_new and artifact.kind in OF_CHECKPOINTS and kind not in OF_CHECKPOINTS:
        artifact.kind = kind
        artifact.save(update_fields=["kind"])
    return artifact


@transaction.atomic
def register_checkpoint(
    collaboration: Collaboration, written: CheckpointWritten, folder: Path
) -> Checkpoint:
    """Takes over the file that the coordinator wrote into `folder`.

    Raises UserError when it is missing or is not what was announced; nothing is kept then.
    """
    same = Q(artifact__sha256=written.sha256) | Q(sha256=written.sha256)
    known = Checkpoint.objects.filter(same, collaboration=collaboration).first()
    if known is not None:
        return known
    path = folder / written.filename
    _check_file(path, written)
    artifact = register_file(path, Kind.CHECKPOINT, title=f"{collaboration.slug} {written.round}")
    return Checkpoint.objects.create(
        collaboration=collaboration, artifact=artifact, round=written.round, loss=written.loss
    )


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


@transaction.atomic
def retire(checkpoint: Checkpoint, now: datetime) -> None:
    """Lets its files go, unless somebody else needs the same content; the row stays."""
    files = [file for file in (checkpoint.artifact, checkpoint.model) if file is not None]
    if checkpoint.artifact is not None:
        checkpoint.sha256 = checkpoint.artifact.sha256
        checkpoint.size_bytes = checkpoint.artifact.size_bytes
    checkpoint.artifact, checkpoint.model, checkpoint.retired_at = None, None, now
    checkpoint.save()
    _let_go(files)


@transaction.atomic
def take_model(checkpoint: Checkpoint, model: Artifact) -> None:
    """As what others load of it; an earlier one goes."""
    old, checkpoint.model = checkpoint.model, model
    checkpoint.save(update_fields=["model"])
    _let_go([old] if old is not None else [])


def _let_go(files: list[Artifact]) -> None:
    for file in files:
        is_needed = Checkpoint.objects.filter(Q(artifact=file) | Q(model=file)).exists()
        if file.kind in OF_CHECKPOINTS and not is_needed:
            file.delete()


def delete_unnamed() -> int:
    """Deletes the files that no artifact names; how many."""
    with storage.locked():  # so that none is taken up anew in between
        return storage.sweep(set(Artifact.objects.values_list("path", flat=True)))
