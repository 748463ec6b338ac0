"""Who sees the checkpoints of a collaboration, and which of them stay."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from webapp.accounts.models import User
from webapp.artifacts import services as artifacts
from webapp.artifacts.models import Checkpoint
from webapp.artifacts.selectors import checkpoints
from webapp.audit.services import record
from webapp.collaborations import access
from webapp.collaborations.models import Collaboration
from webapp.core.errors import UserError
from webapp.registry.retention import why_kept

RULES = ("visibility", "keep_last", "keep_every", "keep_evaluated")


@transaction.atomic
def set_rules(collaboration: Collaboration, rules: dict[str, Any], *, by: User) -> None:
    """`rules` has a value for each of RULES. The same ones again change nothing."""
    access.require(by, "keep", collaboration)
    locked = _locked(collaboration)
    before = {name: getattr(locked, name) for name in RULES}
    changed = {name: rules[name] for name in RULES if rules[name] != before[name]}
    if not changed:
        return
    for name, value in changed.items():
        setattr(locked, name, value)
    locked.save(update_fields=list(changed))
    detail = {name: f"{before[name]} → {value}" for name, value in changed.items()}
    record(actor=by, action="checkpoints.rules", subject=locked, detail=detail)


@transaction.atomic
def pin(checkpoint: Checkpoint, *, by: User) -> None:
    """Raises UserError where its file is gone."""
    _set_pinned(checkpoint, True, by)


@transaction.atomic
def unpin(checkpoint: Checkpoint, *, by: User) -> None:
    _set_pinned(checkpoint, False, by)


def _set_pinned(checkpoint: Checkpoint, is_pinned: bool, by: User) -> None:
    access.require(by, "keep", checkpoint.collaboration)
    _locked(checkpoint.collaboration)
    fresh = Checkpoint.objects.get(pk=checkpoint.pk)
    if fresh.artifact_id is None:
        raise UserError(f"The checkpoint of round {fresh.round} was deleted already.")
    if fresh.is_pinned == is_pinned:
        return
    fresh.is_pinned = is_pinned
    fresh.save(update_fields=["is_pinned"])
    action = "checkpoints.pinned" if is_pinned else "checkpoints.unpinned"
    record(actor=by, action=action, subject=fresh.collaboration, detail={"round": fresh.round})


@transaction.atomic
def retire(collaboration: Collaboration, now: datetime) -> int:
    """Lets go of the checkpoints that no rule keeps; how many. A second one finds nothing to do."""
    locked = _locked(collaboration)
    kept = why_kept(locked, now)
    old = [one for one in checkpoints(locked).select_related("model") if one.pk not in kept]
    for checkpoint in old:
        artifacts.retire(checkpoint, now)
    return len(old)


def _locked(collaboration: Collaboration) -> Collaboration:
    """Acts on the checkpoints of one collaboration take turns."""
    return Collaboration.objects.select_for_update().get(pk=collaboration.pk)
