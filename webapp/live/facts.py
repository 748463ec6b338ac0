"""What a frame tells beside the board: read from the database, at most every few seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, F, Max, Sum
from django.db.models.functions import Coalesce

from trainer.catalogue import adapter_of
from trainer.recipe import Recipe
from trainer.wire import Outcome, Role
from webapp.accounts.selectors import public_name
from webapp.artifacts.models import Checkpoint
from webapp.artifacts.selectors import newest_checkpoint
from webapp.collaborations.models import Collaboration, State, Visibility
from webapp.credit.selectors import collaboration_totals
from webapp.devices.models import Session
from webapp.live.models import RoundRecord
from webapp.live.public import public_checkpoint, public_round

OVERDUE = 2  # checkpoints missed in a row: no longer by chance
APPLIED = (Outcome.CLEAN, Outcome.ALONE)


@dataclass(frozen=True)
class Facts:
    """`shown` are keys of the frame; `names` are the public names of devices in session."""

    shown: dict[str, Any]
    names: dict[str, str]


def read_facts(collaboration: Collaboration) -> Facts:
    last = collaboration.rounds.order_by("-round").first()
    checkpoint = newest_checkpoint(collaboration)
    kept = checkpoint.round if checkpoint else 0
    recipe = collaboration.recipe
    return Facts(
        shown={
            "slug": collaboration.slug,
            "title": collaboration.title,
            "state": collaboration.state,
            "state_reason": collaboration.state_reason,
            "target": recipe.round.target_samples,
            "least": recipe.participation.least_members,
            "last_round": public_round(last) if last else None,
            "checkpoint": _told(collaboration, recipe, checkpoint) if checkpoint else None,
            "checkpoint_overdue": _is_overdue(collaboration, recipe, last, kept),
            "effort": read_effort(collaboration),
        },
        names=_names(collaboration),
    )


def _told(collaboration: Collaboration, recipe: Recipe, checkpoint: Checkpoint) -> dict[str, Any]:
    adapter = adapter_of(recipe)
    has_adapter = adapter is not None and adapter.in_peft
    for_all = collaboration.visibility == Visibility.EVERYBODY
    return public_checkpoint(checkpoint, has_adapter, for_all=for_all)


def _is_overdue(
    collaboration: Collaboration, recipe: Recipe, last: RoundRecord | None, kept: int
) -> bool:
    """Whether rounds go on and what they learnt is kept nowhere but in the swarm."""
    if last is None or collaboration.state != State.RUNNING:
        return False
    return last.round + 1 - kept >= OVERDUE * recipe.round.checkpoint_every


def read_effort(collaboration: Collaboration) -> dict[str, Any]:
    """The figures of the effort so far, coordinators left out. Lengths are in seconds."""
    length = Coalesce(F("ended_at"), F("last_seen_at")) - F("started_at")
    figures = (
        Session.objects.filter(collaboration=collaboration)
        .exclude(role=Role.COORDINATOR)
        .annotate(length=length)
        .aggregate(
            participants=Count("device__owner", distinct=True),
            sessions=Count("pk"),
            compute_s=Sum("compute_s", default=0.0),
            mean=Avg("length"),
            longest=Max("length"),
        )
    )
    return {
        "participants": figures["participants"],
        "sessions": figures["sessions"],
        "compute_s": round(figures["compute_s"], 1),
        "mean_session_s": round(figures["mean"].total_seconds(), 1) if figures["mean"] else 0.0,
        "longest_session_s": (
            round(figures["longest"].total_seconds(), 1) if figures["longest"] else 0.0
        ),
        "samples": collaboration_totals(collaboration).samples,
        "rounds": collaboration.rounds.filter(outcome__in=APPLIED).count(),
    }


def _names(collaboration: Collaboration) -> dict[str, str]:
    present = Session.objects.filter(
        collaboration=collaboration, ended_at__isnull=True
    ).select_related("device__owner")
    devices = [session.device for session in present if session.device is not None]
    return {str(device.pk): public_name(device.owner) for device in devices}
