"""Models pushed to a hub: asked for, done by a job, told with the address or why not.

The hub's token is a setting. It goes into the environment of the program that pushes, and nowhere
else: not into the database, a page, a log or the words of a command.
"""

from __future__ import annotations

import re
import tempfile
import threading
import zipfile
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction

from webapp.accounts.models import User
from webapp.artifacts.models import Checkpoint
from webapp.artifacts.storage import absolute_path
from webapp.audit.services import record
from webapp.collaborations import access
from webapp.core import jobs
from webapp.core.errors import UserError
from webapp.core.jobs import PENDING, State
from webapp.core.watched import read_json, run
from webapp.registry.card import card
from webapp.registry.models import Push
from webapp.registry.packing import README

WORK = "webapp.registry.tasks.push"  # which calls this module
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
REPORT = "report.json"
ADVICE = "push it again; what arrived stays there. Or raise the limits of the site's jobs."
UNSET = "No token of a hub is set. Whoever runs the site sets HUB_TOKEN (operations guide)."


@transaction.atomic
def ask(checkpoint: Checkpoint, repository: str, *, is_private: bool, by: User) -> Push:
    """Raises UserError where it cannot be done, or waits already."""
    access.require(by, "keep", checkpoint.collaboration)
    if not settings.HUB_TOKEN:
        raise UserError(UNSET)
    if not REPOSITORY.fullmatch(repository):
        raise UserError(
            f"{repository[:120]!r} is no repository of a hub.", "Write it like OWNER/NAME."
        )
    fresh = Checkpoint.objects.select_for_update().get(pk=checkpoint.pk)
    if fresh.model_id is None:
        raise UserError("There is no model of this checkpoint yet.", "Make the model first.")
    if fresh.pushes.filter(repository=repository, state__in=PENDING).exists():
        raise UserError(f"It is being pushed to {repository} already.")
    push = Push.objects.create(
        checkpoint=fresh,
        repository=repository,
        is_private=is_private,
        title=f"{fresh.collaboration.slug}, round {fresh.round}"[:80],
        organiser=by,
    )
    detail = {"round": fresh.round, "repository": repository}
    record(actor=by, action="checkpoints.pushed", subject=fresh.collaboration, detail=detail)
    jobs.call_when_kept(WORK)
    return push


@transaction.atomic
def cancel(push: Push, *, by: User) -> None:
    """The job that does it notices within seconds. Raises UserError when it is over."""
    access.require(by, "keep", push.checkpoint.collaboration)
    locked = jobs.lock(push)
    if locked is None or locked.is_over:
        raise UserError(f"This push is {push.state} already.")
    jobs.end(locked, State.CANCELLED, "by an organiser")
    about, detail = push.checkpoint.collaboration, {"repository": push.repository}
    record(actor=by, action="checkpoints.push_cancelled", subject=about, detail=detail)


def claim(now: datetime) -> Push | None:
    return jobs.claim(Push, now)


def give_up_silent(now: datetime) -> None:
    """Ends those whose job died: nobody does them any more."""
    jobs.give_up_silent(Push, now)


def do(push: Push, stopping: threading.Event) -> None:
    """Until it is done, cancelled, over a limit, or `stopping` is set."""
    checkpoint = push.checkpoint
    model = checkpoint.model
    if not settings.HUB_TOKEN or model is None or not absolute_path(model.path).is_file():
        jobs.fail(push, "Its model was deleted meanwhile." if settings.HUB_TOKEN else UNSET)
        return
    with tempfile.TemporaryDirectory(prefix="push-") as name:
        folder = Path(name)
        with zipfile.ZipFile(absolute_path(model.path)) as archive:
            archive.extractall(folder / "model")  # the site made it itself
        (folder / "model" / README).write_text(card(checkpoint), encoding="utf-8")
        failure = run(
            _words(push, folder),
            folder,
            stopping=stopping,
            is_wanted=lambda: jobs.note(push, doing="pushing it"),
            advice=ADVICE,
            secrets={"HF_TOKEN": settings.HUB_TOKEN},
        )
        report = read_json(folder / REPORT) or {}
        if address := report.get("address"):
            _finish(push, address)
        else:
            jobs.fail(push, _without_token(report.get("problem") or failure or "It was cancelled."))


def _words(push: Push, folder: Path) -> list[str]:
    """What the trainer is asked."""
    message = f"Checkpoint of round {push.checkpoint.round}"
    return [
        *("push", str(folder / "model"), push.repository, "--hub", settings.HUB_URL),
        *(["--private"] if push.is_private else []),
        *("--message", message, "--report", str(folder / REPORT)),
    ]


def _without_token(words: str) -> str:
    return words.replace(settings.HUB_TOKEN, "…") if settings.HUB_TOKEN else words


@transaction.atomic
def _finish(push: Push, address: str) -> None:
    """Does nothing to one that another ended meanwhile."""
    locked = jobs.lock(push)
    if locked is not None and locked.state == State.RUNNING:
        locked.address = address
        locked.save(update_fields=["address"])
        jobs.end(locked, State.FINISHED)
