"""Gives out parts of the held-out text, and takes what devices measured with them.

A part is one device's until its lease runs out; what is measured counts once, for who holds it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from trainer.grant import (
    Checkpoint,
    Evaluated,
    EvaluationAnswer,
    EvaluationRequest,
    EvaluationTask,
)
from trainer.planner.ways import is_evaluable
from webapp.artifacts.models import Checkpoint as Written
from webapp.artifacts.selectors import newest_checkpoint
from webapp.collaborations.grants import admit
from webapp.collaborations.models import Collaboration
from webapp.core.errors import UserError
from webapp.credit.services import book_evaluation
from webapp.devices.models import Device
from webapp.held_out.models import Part

LEASE = timedelta(minutes=15)
NUM_PARTS = 16
MOST_SEQUENCES = 64  # of a part, as the engine reads it


@transaction.atomic
def next_part(
    device: Device, collaboration: Collaboration, request: EvaluationRequest, *, now: datetime
) -> EvaluationAnswer:
    """What `device` measures next. Raises UserError where it may not take part."""
    admit(device, collaboration)
    recipe = collaboration.recipe
    if collaboration.revision.sha256 != request.recipe_sha256 or not is_evaluable(recipe):
        raise UserError(
            f"{collaboration.title} has no such held-out text to measure with.",
            "Start the agent anew: it joins with the present recipe.",
            kind="unknown",
        )
    Collaboration.objects.select_for_update().get(pk=collaboration.pk)  # calls take turns
    if request.done is not None:
        _take(device, collaboration, request.done, now)
    newest = newest_checkpoint(collaboration)
    if newest is None:
        return EvaluationAnswer(task=None, reason="there is no checkpoint to measure yet")
    part = _free_part(newest, device, now)
    if part is None:
        reason = f"all parts of round {newest.round}'s model are measured or being measured"
        return EvaluationAnswer(task=None, reason=reason)
    part.device, part.expires_at = device, now + LEASE
    part.save(update_fields=["device", "expires_at"])
    return EvaluationAnswer(task=_task(newest, part))


def _take(device: Device, collaboration: Collaboration, done: Evaluated, now: datetime) -> None:
    """Passed over where it is no longer this device's, or was taken already."""
    most = MOST_SEQUENCES * collaboration.recipe.sequence_length
    part = Part.objects.filter(
        checkpoint__artifact__sha256=done.checkpoint,
        checkpoint__collaboration=collaboration,
        number=done.part,
        device=device,
        loss_sum__isnull=True,
    ).first()
    if part is None or done.tokens > most:
        return
    part.loss_sum, part.tokens = done.loss_sum, done.tokens
    part.save(update_fields=["loss_sum", "tokens"])
    book_evaluation(device, collaboration, tokens=done.tokens, compute_s=done.compute_s, now=now)


def _free_part(newest: Written, device: Device, now: datetime) -> Part | None:
    """The first that nobody has measured or measures; its own before that."""
    Part.objects.bulk_create(
        [Part(checkpoint=newest, number=number) for number in range(NUM_PARTS)],
        ignore_conflicts=True,
    )
    open_ones = Part.objects.filter(checkpoint=newest, loss_sum__isnull=True)
    is_free = Q(device__isnull=True) | Q(expires_at__lte=now)
    return open_ones.filter(device=device).first() or open_ones.filter(is_free).first()


def _task(newest: Written, part: Part) -> EvaluationTask:
    artifact = newest.file
    return EvaluationTask(
        checkpoint=Checkpoint(
            round=newest.round,
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
            filename=artifact.filename,
        ),
        part=part.number,
        num_parts=NUM_PARTS,
        valid_s=LEASE.total_seconds(),
    )
