"""Jobs about checkpoints: made into models that others load, and pushed to a hub."""

from __future__ import annotations

from django.db import models

from webapp.artifacts.models import Checkpoint
from webapp.core.jobs import Job


class Packing(Job):
    """One checkpoint made into a folder that `from_pretrained` loads, packed as its `model`."""

    checkpoint = models.OneToOneField(Checkpoint, on_delete=models.CASCADE)

    class Meta(Job.Meta):
        abstract = False


class Push(Job):
    """A model put into a repository of a hub; `address` is what came of it."""

    checkpoint = models.ForeignKey(Checkpoint, on_delete=models.CASCADE, related_name="pushes")
    repository = models.CharField(max_length=120)
    is_private = models.BooleanField(default=True)
    address = models.URLField(max_length=300, blank=True)

    class Meta(Job.Meta):
        abstract = False
