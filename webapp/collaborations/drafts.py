"""Drafts: what was never opened may still be changed and deleted."""

from __future__ import annotations

from django.db import transaction

from trainer import catalogue
from trainer.recipe import Recipe
from webapp.accounts.models import User
from webapp.audit.selectors import newest_entry
from webapp.audit.services import record
from webapp.collaborations import access
from webapp.collaborations.models import Collaboration, State
from webapp.collaborations.selectors import version_of
from webapp.collaborations.services import add_revision, credit_of, refuse_taken
from webapp.core.errors import UserError
from webapp.core.text import one_line

CHANGED = "collaboration.changed"


def why_frozen(collaboration: Collaboration | None) -> str:
    """Why there is no draft to change here, in words; empty: it is one. None: it was not found."""
    if collaboration is None:
        return "This draft is not there any more: somebody deleted it or gave it another address."
    if collaboration.state != State.DRAFT:
        return (
            f"{collaboration.title} is {collaboration.state}: "
            "its recipe is frozen, and only drafts can be changed."
        )
    return ""


@transaction.atomic
def change(
    draft: Collaboration,
    *,
    seen: str,
    title: str,
    summary: str,
    recipe: Recipe,
    changed: list[str],
    by: User,
) -> Collaboration:
    """Gives a draft other words and, where the recipe differs, a new revision of it.

    `seen` is the `version_of` what the organiser had before them; `changed` names the fields, for
    the audit log. The same content again changes nothing. Raises UserError: kind `conflict` when
    somebody else changed it since, `forbidden`, or none when it is no draft or the name is taken.
    """
    access.require(by, "edit", draft)
    catalogue.check(recipe)
    locked = Collaboration.objects.select_for_update().filter(pk=draft.pk).first()
    if locked is None or why_frozen(locked):
        raise UserError(why_frozen(locked))
    before, text_credit = locked.revision, locked.text_credit
    title, summary = one_line(title, 80), one_line(summary, 300)
    differs = recipe.sha256() != before.sha256
    if not differs and (title, summary) == (locked.title, locked.summary):
        return locked
    if seen != version_of(locked):
        last = newest_entry(locked, CHANGED)
        who = last.actor_name if last and last.actor_name else "Somebody"
        raise UserError(f"{who} changed this draft after you opened it.", kind="conflict")
    detail = {"changed": ", ".join(changed), "recipe": recipe.sha256()}
    if recipe.collaboration != locked.slug:
        refuse_taken(recipe.collaboration)
        detail["was at"] = locked.slug
    if recipe.texts != before.recipe.texts:
        text_credit = credit_of(recipe)
    locked.slug, locked.title = recipe.collaboration, title
    locked.summary, locked.text_credit = summary, text_credit
    locked.save(update_fields=["slug", "title", "summary", "text_credit"])
    if differs:
        add_revision(locked, recipe, number=before.number + 1)
    record(actor=by, action=CHANGED, subject=locked, detail=detail)
    return locked


@transaction.atomic
def delete(draft: Collaboration, *, by: User) -> None:
    """Removes what was never opened; the audit row stays. Raises UserError for anything else."""
    access.require(by, "delete", draft)
    locked = Collaboration.objects.select_for_update().get(pk=draft.pk)
    if locked.state != State.DRAFT:
        raise UserError(
            f"{locked.title} is {locked.state}: only drafts can be deleted.", "Finish it instead."
        )
    record(actor=by, action="collaboration.deleted", subject=locked)
    locked.delete()
