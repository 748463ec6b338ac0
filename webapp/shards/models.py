"""The texts of a recipe, each cut into shards, and which device reads which of them."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Pool(models.Model):
    """The shards of one text. Its row is locked whenever one of them changes hands.

    `heard_at` is when a device last asked. Longer silence means that the site was away.
    """

    revision = models.ForeignKey(
        "collaborations.Revision", on_delete=models.CASCADE, related_name="pools"
    )
    text = models.PositiveSmallIntegerField()
    num_shards = models.PositiveIntegerField()
    heard_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["revision", "text"]
        constraints = [
            models.UniqueConstraint(fields=["revision", "text"], name="one_pool_per_text")
        ]

    def __str__(self) -> str:
        return f"text {self.text + 1} of {self.revision}"


class Shard(models.Model):
    """One part of a text: read `passes` times, and once more up to `position`, and of the document
    that comes then, its first `skip` token ids.

    One row per shard holds at most one device. It is leased until `expires_at`; a device that let
    its lease run out stays here until another one gets the shard, and may take it up again.
    """

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="shards")
    number = models.PositiveIntegerField()
    passes = models.PositiveIntegerField(default=0)
    position = models.PositiveBigIntegerField(default=0)
    skip = models.PositiveBigIntegerField(default=0)
    device = models.ForeignKey("devices.Device", null=True, blank=True, on_delete=models.SET_NULL)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pool", "number"]
        constraints = [
            models.UniqueConstraint(fields=["pool", "number"], name="one_row_per_shard"),
            models.UniqueConstraint(fields=["pool", "device"], name="one_shard_per_device"),
        ]

    def __str__(self) -> str:
        return f"part {self.number + 1} of {self.pool}"
