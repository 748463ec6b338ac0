"""What happens to accounts: rename, hide, delete, ban."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from webapp.accounts.models import User
from webapp.accounts.selectors import SYSTEM_EMAIL
from webapp.audit.services import record
from webapp.core.errors import UserError
from webapp.core.push import push_control
from webapp.core.text import one_line

NAME_LENGTH = 40


@transaction.atomic
def rename(user: User, *, name: str) -> None:
    name = one_line(name, NAME_LENGTH)
    if not name:
        raise UserError("The name is empty.", "Type a name of 1 to 40 characters.")
    if User.objects.filter(name__iexact=name).exclude(pk=user.pk).exists():
        raise UserError(f"Somebody else is called {name}.", "Choose another name.")
    record(actor=user, action="account.renamed", subject=user, detail={"name": name})
    user.name = name
    user.save(update_fields=["name"])


@transaction.atomic
def set_listed(user: User, *, is_listed: bool) -> None:
    user.is_listed = is_listed
    user.save(update_fields=["is_listed"])
    record(actor=user, action="account.listed" if is_listed else "account.hidden", subject=user)


@transaction.atomic
def set_named(user: User, *, is_named: bool) -> None:
    """Whether descriptions of models that are made from now on may name them."""
    user.is_named = is_named
    user.save(update_fields=["is_named"])
    record(actor=user, action="account.named" if is_named else "account.unnamed", subject=user)


@transaction.atomic
def delete_account(user: User) -> None:
    """Removes the person; figures stay. Rows of credit and sessions lose their owner (SET_NULL).

    E-mail addresses, devices, tokens and codes go with the account (CASCADE).
    """
    if user.is_superuser and User.objects.filter(is_superuser=True, is_active=True).count() == 1:
        raise UserError(
            "This is the only administrator of the site.", "Make somebody else one first."
        )
    record(actor=user, action="account.deleted", subject=user)
    _tell_agents(user)
    LogEntry.objects.filter(  # the admin's own log keeps names in clear
        content_type=ContentType.objects.get_for_model(User), object_id=str(user.pk)
    ).delete()
    user.delete()


@transaction.atomic
def ban(user: User, *, by: User, reason: str) -> None:
    """Shuts out all devices of `user`; `reason` appears on their screens."""
    reason = one_line(reason, 300)
    if not reason:
        raise UserError("A ban needs a reason.", "Write what the person will read.")
    if user.is_organiser:
        raise UserError(f"{user.name} is an organiser.", "Take that role away first.")
    user.ban_reason = reason
    user.save(update_fields=["ban_reason"])
    record(actor=by, action="account.banned", subject=user, detail={"reason": reason})
    _tell_agents(user)


@transaction.atomic
def lift_ban(user: User, *, by: User) -> None:
    user.ban_reason = ""
    user.save(update_fields=["ban_reason"])
    record(actor=by, action="account.ban_lifted", subject=user)
    _tell_agents(user)


def system_user() -> User:
    """The account that owns the coordinators: it cannot log in and is listed nowhere."""
    user = User.objects.filter(email=SYSTEM_EMAIL).first()
    if user is None:
        user = User.objects.create_user(
            SYSTEM_EMAIL, None, name="coordinator", is_listed=False, is_active=False
        )
    return user


def _tell_agents(user: User) -> None:
    for device_id in user.devices.values_list("pk", flat=True):
        push_control(device_id=device_id)
