"""Checkpoints measured by devices that are too small to train: who measures what, and what came."""

from __future__ import annotations

from django.db import models


class Part(models.Model):
    """One part of the held-out text, for one checkpoint: leased until `expires_at`, then measured.

    `loss_sum` is over its `tokens` target tokens, null until it was measured; `device` did it.
    """

    checkpoint = models.ForeignKey(
        "artifacts.Checkpoint", on_delete=models.CASCADE, related_name="parts"
    )
    number = models.PositiveIntegerField()
    device = models.ForeignKey("devices.Device", null=True, blank=True, on_delete=models.SET_NULL)
    expires_at = models.DateTimeField(null=True, blank=True)
    loss_sum = models.FloatField(null=True, blank=True)
    tokens = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["-checkpoint__round", "number"]
        constraints = [
            models.UniqueConstraint(fields=["checkpoint", "number"], name="one_row_per_part")
        ]

    def __str__(self) -> str:
        return f"part {self.number + 1}, {self.checkpoint}"
