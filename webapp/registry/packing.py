"""Checkpoints as models that others load: asked for, made by a job, offered beside them."""

from __future__ import annotations

import tempfile
import threading
import zipfile
from datetime import datetime
from pathlib import Path

from django.db import transaction

from webapp.accounts.models import User
from webapp.artifacts.links import Missing, checkpoint_words
from webapp.artifacts.models import Checkpoint, Kind
from webapp.artifacts.services import register_file, take_model
from webapp.audit.services import record
from webapp.collaborations import access
from webapp.core import jobs
from webapp.core.errors import UserError
from webapp.core.jobs import PENDING, State
from webapp.core.watched import run
from webapp.registry.card import card
from webapp.registry.models import Packing
from webapp.registry.selectors import final_ones

WORK = "webapp.registry.tasks.pack"  # which calls this module
ADVICE = "raise the limits of the site's jobs."
README = "README.md"


@transaction.atomic
def ask(checkpoint: Checkpoint, *, by: User) -> Packing:
    """Also again: the card in it is as of when it was made. Raises UserError."""
    access.require(by, "keep", checkpoint.collaboration)
    packing = _of(checkpoint, by)
    about, detail = checkpoint.collaboration, {"round": checkpoint.round}
    record(actor=by, action="checkpoints.packed", subject=about, detail=detail)
    jobs.call_when_kept(WORK)
    return packing


def _of(checkpoint: Checkpoint, by: User | None) -> Packing:
    """Raises UserError where there is nothing to do, or nothing to do it with."""
    fresh = Checkpoint.objects.select_for_update().get(pk=checkpoint.pk)
    if fresh.artifact_id is None:
        raise UserError(f"The checkpoint of round {fresh.round} was deleted already.")
    title = f"{fresh.collaboration.slug}, round {fresh.round}"[:80]
    packing, _ = Packing.objects.get_or_create(
        checkpoint=fresh, defaults={"title": title, "organiser": by}
    )
    if packing.state in PENDING:
        return packing
    packing.state, packing.reason = State.WAITING, ""
    packing.save(update_fields=["state", "reason"])
    return packing


def enter_due(now: datetime) -> None:
    """The last checkpoint of each collaboration that is over is made into a model."""
    for checkpoint in final_ones(now):
        if not Packing.objects.filter(checkpoint=checkpoint).exists():
            with transaction.atomic():
                _of(checkpoint, None)


def claim(now: datetime) -> Packing | None:
    return jobs.claim(Packing, now)


def give_up_silent(now: datetime) -> None:
    """Ends those whose job died: nobody does them any more."""
    jobs.give_up_silent(Packing, now)


def do(packing: Packing, stopping: threading.Event) -> None:
    """Until it is done, over a limit, or `stopping` is set."""
    checkpoint = packing.checkpoint
    with tempfile.TemporaryDirectory(prefix="model-") as name:
        folder = Path(name)
        try:
            words = _words(checkpoint, folder)
        except Missing as missing:
            jobs.fail(packing, str(missing))
            return
        failure = run(
            words,
            folder,
            stopping=stopping,
            is_wanted=lambda: jobs.note(packing, doing="making the model"),
            advice=ADVICE,
        )
        if failure:
            jobs.fail(packing, failure.replace(f"{folder}/", ""))
        elif jobs.note(packing, doing="packing it"):
            about = card(checkpoint, names_people=False)  # the file outlives their consent
            (folder / "model" / README).write_text(about, encoding="utf-8")
            packed = folder / f"{checkpoint.collaboration.slug}-round-{checkpoint.round}.zip"
            _pack(folder / "model", packed)
            _finish(packing, packed)


def _words(checkpoint: Checkpoint, folder: Path) -> list[str]:
    """What the trainer is asked; puts what it needs into `folder`. Raises Missing."""
    recipe = checkpoint.collaboration.recipe
    if checkpoint.artifact is None:
        raise Missing(f"The checkpoint of round {checkpoint.round} was deleted meanwhile.")
    file, how = checkpoint_words(recipe, checkpoint.artifact.sha256, checkpoint.round, folder)
    return ["export", file, str(folder / "model"), *how]


def _pack(folder: Path, target: Path) -> None:
    """Weights do not get smaller, so nothing is compressed; the same files make the same one."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                about = zipfile.ZipInfo(str(path.relative_to(folder)))
                with path.open("rb") as source, archive.open(about, "w", force_zip64=True) as file:
                    while piece := source.read(1024 * 1024):
                        file.write(piece)


@transaction.atomic
def _finish(packing: Packing, packed: Path) -> None:
    """Does nothing to one that another ended meanwhile."""
    locked = jobs.lock(packing)
    if locked is None or locked.state != State.RUNNING:
        return
    checkpoint = Checkpoint.objects.select_for_update().get(pk=locked.checkpoint_id)
    if checkpoint.artifact_id is None:
        jobs.end(locked, State.FAILED, "Its checkpoint was deleted meanwhile.")
        return
    take_model(checkpoint, register_file(packed, Kind.MODEL, title=locked.title))
    jobs.end(locked, State.FINISHED)
