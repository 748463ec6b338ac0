"""Creates collaborations and moves them from state to state."""

from __future__ import annotations

from itertools import count

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from trainer import catalogue
from trainer.recipe import Recipe
from webapp.accounts.models import User
from webapp.accounts.services import system_user
from webapp.audit.services import record
from webapp.collaborations import access
from webapp.collaborations.models import Collaboration, Revision, State
from webapp.collaborations.selectors import version_of
from webapp.collaborations.states import ENDED, may_move
from webapp.core.errors import UserError
from webapp.core.push import push_control
from webapp.core.text import one_line
from webapp.core.tokens import hashed, new_token
from webapp.devices.models import Device


@transaction.atomic
def create(
    *, title: str, recipe: Recipe, by: User | None, summary: str = "", text_credit: str = ""
) -> Collaboration:
    """A draft under the slug that its recipe names. Raises UserError when the slug is taken.

    Raises ValueError when the recipe names an unknown plug-in. `by` None: the site itself.
    """
    catalogue.check(recipe)
    refuse_taken(recipe.collaboration)
    collaboration = Collaboration.objects.create(
        slug=recipe.collaboration,
        title=one_line(title, 80),
        summary=one_line(summary, 300),
        text_credit=one_line(text_credit, 300) or credit_of(recipe),
        organiser=by,
    )
    add_revision(collaboration, recipe, number=1)
    detail = {"recipe": recipe.sha256()}
    record(actor=by, action="collaboration.created", subject=collaboration, detail=detail)
    return collaboration


def refuse_taken(slug: str) -> None:
    """Raises UserError when a collaboration has this address already."""
    if Collaboration.objects.filter(slug=slug).exists():
        raise UserError(
            f"There is a collaboration at /c/{slug}/ already.", "Choose another short name."
        )


def add_revision(collaboration: Collaboration, recipe: Recipe, *, number: int) -> None:
    Revision.objects.create(
        collaboration=collaboration,
        number=number,
        recipe_json=recipe.canonical(),
        sha256=recipe.sha256(),
    )


def credit_of(recipe: Recipe) -> str:
    """Whose texts it names, without repeats."""
    return "; ".join(dict.fromkeys(text.credit for text in recipe.texts if text.credit))[:300]


def open_(
    collaboration: Collaboration, *, by: User | None, reason: str = "", seen: str = ""
) -> None:
    """Gives a draft its swarm port; the coordinator starts it and volunteers may join.

    `seen` is the `version_of` what was looked at, "" where nobody looked. Raises UserError: kind
    `conflict` when the draft was changed since.
    """
    _move(collaboration, State.OPEN, action="open", by=by, reason=reason, seen=seen)


def pause(collaboration: Collaboration, *, by: User | None, reason: str = "") -> None:
    _move(collaboration, State.PAUSED, action="pause", by=by, reason=reason)


@transaction.atomic
def resume(collaboration: Collaboration, *, by: User | None, reason: str = "") -> None:
    collaboration.refresh_from_db()
    after = State.RUNNING if collaboration.started_at else State.OPEN
    if collaboration.state != State.PAUSED:
        raise UserError(f"{collaboration.title} is not paused: it is {collaboration.state}.")
    _move(collaboration, after, action="resume", by=by, reason=reason)


def finish(collaboration: Collaboration, *, by: User | None, reason: str = "") -> None:
    _move(collaboration, State.FINISHED, action="finish", by=by, reason=reason)


def fail(collaboration: Collaboration, *, reason: str) -> None:
    """The site gives up, for example because the loss is no number any more."""
    _move(collaboration, State.FAILED, action="fail", by=None, reason=reason)


@transaction.atomic
def _move(
    collaboration: Collaboration,
    after: State,
    *,
    action: str,
    by: User | None,
    reason: str,
    seen: str = "",
) -> None:
    """Changes the state, records it and tells every agent.

    Raises UserError when `by` may not, the move is not in the table, or it is not as `seen`.
    """
    if by is not None:
        access.require(by, action, collaboration)
    locked = Collaboration.objects.select_for_update().get(pk=collaboration.pk)
    if not may_move(locked.state, after):
        raise UserError(
            f"{locked.title} is {locked.state} and cannot become {after}.",
            "Reload the page to see its present state.",
        )
    if seen and seen != version_of(locked):
        raise UserError(
            "It was not opened: the draft was changed after you looked.",
            "Look at it again.",
            kind="conflict",
        )
    before = locked.state
    locked.state = after
    locked.state_reason = one_line(reason, 300)
    if locked.swarm_port is None:
        locked.swarm_port = _free_port()
    if after in ENDED:
        locked.finished_at = timezone.now()
    locked.save(update_fields=["state", "state_reason", "swarm_port", "finished_at"])
    detail = {"before": before, "after": after, "reason": locked.state_reason}
    record(actor=by, action=f"collaboration.{action}", subject=locked, detail=detail)
    collaboration.refresh_from_db()
    push_control(slug=locked.slug)


def _free_port() -> int:
    """The lowest port from SWARM_FIRST_PORT on that no living collaboration has."""
    Collaboration.objects.filter(state__in=ENDED).update(swarm_port=None)
    taken = set(Collaboration.objects.exclude(swarm_port=None).values_list("swarm_port", flat=True))
    return next(port for port in count(settings.SWARM_FIRST_PORT) if port not in taken)


@transaction.atomic
def note_round(collaboration: Collaboration, number: int) -> None:
    """Round `number` is done: remembers the highest one; the first makes an open one running."""
    rows = Collaboration.objects.filter(pk=collaboration.pk)
    rows.filter(round__lt=number).update(round=number)
    now = timezone.now()
    started = rows.filter(state=State.OPEN).update(
        state=State.RUNNING, state_reason="", started_at=now
    )
    if started:
        record(actor=None, action="collaboration.started", subject=collaboration)
        push_control(slug=collaboration.slug)


def note_swarm(collaboration: Collaboration, *, addresses: tuple[str, ...]) -> None:
    """Where newcomers find the coordinator's peer."""
    Collaboration.objects.filter(pk=collaboration.pk).update(bootstrap=list(addresses))


@transaction.atomic
def coordinator_device(collaboration: Collaboration) -> tuple[Device, str]:
    """The hidden device of this collaboration's coordinator, with a new token; the old one dies."""
    token = new_token()
    device, _ = Device.objects.update_or_create(
        owner=system_user(), name=collaboration.slug[:60], defaults={"token_hash": hashed(token)}
    )
    return device, token
