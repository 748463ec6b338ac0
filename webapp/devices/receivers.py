"""What happens to devices elsewhere and concerns their passports."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import pre_delete
from django.dispatch import receiver

from webapp.devices.models import DeletedDevice, Device


@receiver(pre_delete, sender=Device)
def remember_passport(instance: Device, **kwargs: Any) -> None:
    """An account that is deleted takes its devices along, but not the passports they hold."""
    if instance.passport_expires_at is not None:
        DeletedDevice.objects.create(
            id=instance.pk, passport_expires_at=instance.passport_expires_at
        )
