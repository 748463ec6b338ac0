"""Machines of volunteers, the codes that enrol them, and the sessions they train in."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

CODE_LIFETIME = timedelta(hours=24)


def code_expiry():
    return timezone.now() + CODE_LIFETIME


class Device(models.Model):
    """One machine. Its token is kept as a hash; `revoked_at` shuts it out for good.

    `passport_expires_at` is when the last of its passports runs out. `placed_in` is where the site
    put it, because its owner did not pick a collaboration.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="devices"
    )
    name = models.CharField(max_length=60)
    token_hash = models.CharField(max_length=64, unique=True)
    machine = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_reason = models.CharField(max_length=300, blank=True)
    passport_expires_at = models.DateTimeField(null=True, blank=True, db_index=True)
    placed_in = models.ForeignKey(
        "collaborations.Collaboration", null=True, blank=True, on_delete=models.SET_NULL
    )
    placed_at = models.DateTimeField(null=True, blank=True)
    placed_because = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["name", "created_at"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_revoked(self) -> bool:
        return self.revoked_at is not None


class DeletedDevice(models.Model):
    """What is kept of a deleted device, under its id, until its passports have run out."""

    id = models.UUIDField(primary_key=True)
    passport_expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.id.hex


class EnrolmentCode(models.Model):
    """One-time: exchanged for a device token at the launcher's first start.

    `device` without `used_at`: it was started where that device was enrolled already. No
    `collaboration`: the site gives the device one.
    """

    code_hash = models.CharField(max_length=64, unique=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    collaboration = models.ForeignKey(
        "collaborations.Collaboration", null=True, blank=True, on_delete=models.CASCADE
    )
    device_name = models.CharField(max_length=60)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(default=code_expiry, db_index=True)
    used_at = models.DateTimeField(null=True, blank=True)
    device = models.ForeignKey(Device, null=True, blank=True, on_delete=models.SET_NULL)

    def __str__(self) -> str:
        return f"launcher for {self.device_name}"


class Session(models.Model):
    """One life of the agent on one device in one collaboration. `id` is chosen by the agent.

    `device` becomes null when its owner deletes the account; the figures stay.
    """

    id = models.UUIDField(primary_key=True)
    device = models.ForeignKey(
        Device, null=True, on_delete=models.SET_NULL, related_name="sessions"
    )
    collaboration = models.ForeignKey(
        "collaborations.Collaboration", on_delete=models.CASCADE, related_name="sessions"
    )
    role = models.CharField(max_length=12, default="peer")
    started_at = models.DateTimeField(default=timezone.now, db_index=True)
    last_seen_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    end_cause = models.CharField(max_length=12, blank=True)
    end_reason = models.CharField(max_length=300, blank=True)
    stored_seq = models.BigIntegerField(default=0)
    compute_s = models.FloatField(default=0.0)

    class Meta:
        ordering = ["-started_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["device", "collaboration"],
                condition=models.Q(ended_at__isnull=True),
                name="one_open_session_per_device",
            )
        ]

    def __str__(self) -> str:
        return self.id.hex
