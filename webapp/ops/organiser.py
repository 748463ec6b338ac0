"""The first organiser account of an empty site."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from allauth.account.models import EmailAddress
from django.db import transaction

from webapp.accounts.models import User
from webapp.audit.services import record

EMAIL = "organiser@localhost"


@dataclass(frozen=True)
class Credentials:
    """To be shown once: the password is kept nowhere in clear."""

    email: str
    password: str

    def __str__(self) -> str:
        return (
            f"Organiser account: {self.email}  password {self.password}  "
            f"(a new one: manage.py changepassword {self.email})"
        )


@transaction.atomic
def make_first() -> Credentials | None:
    """An organiser with a generated password, or None when there is an organiser already."""
    if User.objects.filter(is_staff=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    user = User.objects.create_superuser(EMAIL, password, name="organiser")
    EmailAddress.objects.create(user=user, email=EMAIL, verified=True, primary=True)
    record(actor=None, action="account.first_organiser", subject=user)
    return Credentials(EMAIL, password)


def first() -> User:
    """In whose name recipes are opened."""
    found = User.objects.filter(is_staff=True).order_by("pk").first()
    assert found is not None, "make_first was called before"
    return found
