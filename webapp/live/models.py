"""What the live page remembers: rounds, events, and a roll-up a minute."""

from __future__ import annotations

from django.db import models


class RoundRecord(models.Model):
    """One finished round. `from_coordinator` wins over what receipts said of the same round.

    `asked` peers were chosen to train in it; null: all might. `mean_norm` is the average's length,
    `told` the strategy's state after it, in words.
    """

    collaboration = models.ForeignKey(
        "collaborations.Collaboration", on_delete=models.CASCADE, related_name="rounds"
    )
    round = models.PositiveBigIntegerField()
    outcome = models.CharField(max_length=10)
    members = models.PositiveIntegerField()
    samples = models.PositiveBigIntegerField()
    tokens = models.PositiveBigIntegerField()
    loss = models.FloatField(null=True)
    held_out_loss = models.FloatField(null=True, blank=True)
    duration_s = models.FloatField(default=0.0)
    bytes_in = models.PositiveBigIntegerField(default=0)
    bytes_out = models.PositiveBigIntegerField(default=0)
    num_lost = models.PositiveIntegerField(default=0)
    asked = models.PositiveIntegerField(null=True, blank=True)
    reason = models.CharField(max_length=300, blank=True)
    mean_norm = models.FloatField(null=True, blank=True)
    told = models.CharField(max_length=300, blank=True)
    from_coordinator = models.BooleanField(default=False)
    at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["round"]
        constraints = [
            models.UniqueConstraint(fields=["collaboration", "round"], name="one_record_per_round")
        ]

    def __str__(self) -> str:
        return f"round {self.round}: {self.outcome}"


class Minute(models.Model):
    """Means over one minute (or one hour, once thinned)."""

    collaboration = models.ForeignKey("collaborations.Collaboration", on_delete=models.CASCADE)
    at = models.DateTimeField()
    peers = models.FloatField()
    samples_per_s = models.FloatField()

    class Meta:
        ordering = ["at"]
        constraints = [
            models.UniqueConstraint(fields=["collaboration", "at"], name="one_minute_per_time")
        ]

    def __str__(self) -> str:
        return f"{self.at}"


class Event(models.Model):
    """A line of the event list. `device` lets a selector name it as its owner's privacy allows."""

    class What(models.TextChoices):
        JOINED = "joined", "joined"
        LEFT = "left", "left"
        LOST = "lost", "lost"
        ROUND = "round", "round finished"
        STATE = "state", "state changed"
        CHECKPOINT = "checkpoint", "checkpoint written"
        WARNING = "warning", "warning"

    collaboration = models.ForeignKey("collaborations.Collaboration", on_delete=models.CASCADE)
    at = models.DateTimeField(db_index=True)
    what = models.CharField(max_length=12, choices=What)
    text = models.CharField(max_length=300)
    device = models.ForeignKey("devices.Device", null=True, blank=True, on_delete=models.SET_NULL)

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return self.text
