"""Checkpoints of a collaboration whose files are short."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.utils import timezone

from webapp.artifacts import storage
from webapp.artifacts.models import Checkpoint, Kind
from webapp.artifacts.services import register_file
from webapp.artifacts.storage import absolute_path
from webapp.collaborations.models import Collaboration
from webapp.live.models import RoundRecord

LONG_AGO = timedelta(hours=9)


def add(
    collaboration: Collaboration,
    folder: Path,
    number: int,
    *,
    held_out: float | None = None,
    ago: timedelta = LONG_AGO,
    content: bytes | None = None,
) -> Checkpoint:
    """One that was written so long ago, after a round with this held-out loss."""
    path = folder / f"checkpoint-{number:09d}.safetensors"
    path.write_bytes(content or f"{collaboration.slug} {number}".encode())
    file = register_file(path, Kind.CHECKPOINT)
    made = Checkpoint.objects.create(
        collaboration=collaboration, artifact=file, round=number, loss=3.5
    )
    Checkpoint.objects.filter(pk=made.pk).update(created_at=timezone.now() - ago)
    RoundRecord.objects.create(
        collaboration=collaboration, round=number - 1, outcome="clean", members=2,
        samples=64, tokens=8000, held_out_loss=held_out, at=timezone.now() - ago,
    )  # fmt: skip
    return made


def on_disk(checkpoint: Checkpoint) -> bool:
    assert checkpoint.artifact is not None
    return absolute_path(checkpoint.artifact.path).exists()


def let_age(monkeypatch) -> None:
    """Files of the folder are no longer fresh: nothing in them changes."""

    monkeypatch.setattr(storage, "FRESH_S", -1.0)


def kept_rounds(collaboration: Collaboration) -> list[int]:
    rows = collaboration.checkpoints.filter(artifact__isnull=False)
    return list(rows.values_list("round", flat=True))
