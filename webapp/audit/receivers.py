"""However an account is deleted, the log forgets its names."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from webapp.audit.services import forget


@receiver(pre_delete, sender=get_user_model())
def forget_names(instance: Any, **kwargs: Any) -> None:
    forget(instance)
