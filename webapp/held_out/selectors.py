"""What devices that are too small to train have measured."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Sum

from webapp.collaborations.models import Collaboration
from webapp.held_out.models import Part


@dataclass(frozen=True)
class Evaluation:
    """`loss` is the mean over all target tokens of the `num_done` parts that were measured."""

    round: int
    loss: float
    num_done: int
    num_parts: int
    num_devices: int


def newest_evaluation(collaboration: Collaboration) -> Evaluation | None:
    """Of the newest checkpoint of which any part was measured; None where there is none."""
    parts = Part.objects.filter(checkpoint__collaboration=collaboration)
    newest = parts.filter(tokens__gt=0).order_by("-checkpoint__round").first()
    if newest is None:
        return None
    parts = parts.filter(checkpoint=newest.checkpoint_id)
    done = parts.filter(loss_sum__isnull=False).aggregate(
        loss=Sum("loss_sum"),
        tokens=Sum("tokens"),
        num_done=Count("pk"),
        num_devices=Count("device", distinct=True),
    )
    return Evaluation(
        round=newest.checkpoint.round,
        loss=done["loss"] / done["tokens"],
        num_done=done["num_done"],
        num_parts=parts.count(),
        num_devices=max(done["num_devices"], 1),
    )
