"""People: an e-mail address to log in with and a pseudonym that others see."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: object) -> User:
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: object) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


def pseudonym() -> str:
    """A free neutral name such as `volunteer-3f9a1c`, until its owner picks another."""
    from webapp.core.tokens import short_id

    return f"volunteer-{short_id()}"


class User(AbstractUser):
    # Django's way to leave out an inherited field, which its stubs do not know.
    username = None  # type: ignore[assignment]
    first_name = None  # type: ignore[assignment]
    last_name = None  # type: ignore[assignment]
    email = models.EmailField(unique=True)
    name = models.CharField(
        "public name", max_length=40, unique=True, help_text="Shown to others. Not your e-mail."
    )
    is_listed = models.BooleanField(
        "list me", default=True, help_text="Off: your name appears on no public page, file or API."
    )
    is_named = models.BooleanField(
        "name me with models",
        default=False,
        help_text="On: the description of a model that you helped to train has your public name.",
    )
    ban_reason = models.CharField(max_length=300, blank=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    # The inherited manager asks for a username, so this one is not made from it.
    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """However an account is made, it has a name: a neutral one until its owner picks one."""
        self.name = self.name or pseudonym()
        super().save(*args, **kwargs)

    @property
    def is_banned(self) -> bool:
        return bool(self.ban_reason)

    @property
    def is_organiser(self) -> bool:
        return self.is_staff
