"""Starts, cancels and ends the making of tokenizers. One is made at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction

from trainer.tokenizing import Wanted
from webapp.accounts.models import User
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.services import register_file
from webapp.audit.services import record
from webapp.collaborations import access
from webapp.core import jobs
from webapp.core.errors import UserError
from webapp.core.jobs import State
from webapp.core.text import one_line
from webapp.tokenizers.models import Making

WORK = "webapp.tokenizers.tasks.work"  # which calls this module
MOST_WAITING = 20


@transaction.atomic
def start(wanted: Wanted, texts: Sequence[Artifact], *, title: str, by: User) -> Making:
    """Lets a job make it. Raises UserError: kind `forbidden`, or none when too many wait."""
    access.require(by, "create")
    if Making.objects.filter(state=State.WAITING).count() >= MOST_WAITING:
        raise UserError(
            f"{MOST_WAITING} tokenizers are waiting already.", "Cancel one, or come back later."
        )
    making = Making.objects.create(
        title=one_line(title, 80) or "Tokenizer",
        organiser=by,
        plan=wanted.model_dump(mode="json"),
    )
    making.texts.set(texts)
    detail = {"texts": ", ".join(map(str, texts))[:300], "size": wanted.size}
    record(actor=by, action="tokenizer.started", subject=making, detail=detail)
    jobs.call_when_kept(WORK)
    return making


@transaction.atomic
def cancel(making: Making, *, by: User) -> None:
    """The job that does it notices within seconds. Raises UserError when it is over."""
    access.require(by, "create")
    locked = jobs.lock(making)
    if locked is None or locked.is_over:
        raise UserError(f"{making.title} is {making.state} already.")
    jobs.end(locked, State.CANCELLED, "by an organiser")
    record(actor=by, action="tokenizer.cancelled", subject=locked)


def claim(now: datetime) -> Making | None:
    return jobs.claim(Making, now)


def note_progress(making: Making, report: dict[str, Any] | None) -> bool:
    """Whether it is still wanted. `report` is the program's own, if there is one."""
    if report is None:
        return jobs.note(making)
    return jobs.note(making, doing=report["doing"][:200], share=report["share"])


@transaction.atomic
def finish(making: Making, file: Path, made: dict[str, Any]) -> None:
    """Offers what was made for collaborations, unless it was cancelled meanwhile."""
    locked = jobs.lock(making)
    if locked is None or locked.state != State.RUNNING:
        return
    locked.artifact = register_file(
        file, Kind.TOKENIZER, title=locked.title, vocab_size=made["size"]
    )
    locked.made, locked.share = made, 1.0
    locked.save(update_fields=["artifact", "made", "share"])
    jobs.end(locked, State.FINISHED)


def give_up_silent(now: datetime) -> None:
    """Ends those whose job died: nobody makes them any more."""
    jobs.give_up_silent(Making, now)
