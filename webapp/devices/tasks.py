"""Timed jobs about devices."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from webapp.devices import services


@shared_task
def delete_expired_codes() -> None:
    services.delete_expired_codes(now=timezone.now())


@shared_task
def forget_deleted_devices() -> None:
    services.forget_deleted_devices(now=timezone.now())
