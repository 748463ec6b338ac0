"""Receipts and what they add up to."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Receipt(models.Model):
    """The lasting record of one offer. `(session, seq)` is its idempotency key.

    `weight` is its part of the weight of all offers in the average. `own_loss`, per target token,
    is of the model after the round, on held-out texts of the device's owner, who agreed to tell it.
    `steps`, `norm` and `drift` are of the offer, as `trainer.wire` has them; older agents do not
    tell them.
    """

    session = models.ForeignKey(
        "devices.Session", on_delete=models.CASCADE, related_name="receipts"
    )
    seq = models.BigIntegerField()
    round = models.PositiveBigIntegerField()
    samples = models.PositiveBigIntegerField()
    tokens = models.PositiveBigIntegerField()
    accepted = models.BooleanField()
    reason = models.CharField(max_length=300, blank=True)
    compute_s = models.FloatField(default=0.0)
    bytes_in = models.PositiveBigIntegerField(default=0)
    bytes_out = models.PositiveBigIntegerField(default=0)
    weight = models.FloatField(null=True, blank=True)
    own_loss = models.FloatField(null=True, blank=True)
    steps = models.PositiveBigIntegerField(null=True, blank=True)
    norm = models.FloatField(null=True, blank=True)
    drift = models.FloatField(null=True, blank=True)
    at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-at"]
        indexes = [models.Index(fields=["round"], name="receipts_of_a_round")]
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="one_receipt_per_seq")
        ]

    def __str__(self) -> str:
        return f"round {self.round}: {self.samples} samples"


class HourlyCredit(models.Model):
    """Counters per hour; leaderboards and charts read only these.

    `user` null: the account was deleted, its figures stay in the totals. `weight` adds up which
    part of the weight of all offers this device's had in each of `rounds`, where agents tell it.
    `evaluated` are target tokens that checkpoints were measured with, which trained nothing.
    """

    collaboration = models.ForeignKey("collaborations.Collaboration", on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    device = models.ForeignKey("devices.Device", null=True, on_delete=models.SET_NULL)
    hour = models.DateTimeField(db_index=True)
    samples = models.PositiveBigIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)
    rounds = models.PositiveBigIntegerField(default=0)
    evaluated = models.PositiveBigIntegerField(default=0)
    compute_s = models.FloatField(default=0.0)
    weight = models.FloatField(default=0.0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collaboration", "device", "hour"], name="one_row_per_device_and_hour"
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour}: {self.samples}"
