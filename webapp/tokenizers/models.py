"""Tokenizers that organisers have made from texts of the site."""

from __future__ import annotations

from django.db import models

from trainer.tokenizing import Wanted
from webapp.artifacts.models import Artifact
from webapp.core.jobs import Job


class Making(Job):
    """One tokenizer, made once. `share` of the work is done, from 0 to 1; `made` is what
    `python -m trainer tokenizer` tells of the result, which is `artifact`.
    """

    plan = models.JSONField()
    texts = models.ManyToManyField(Artifact, related_name="+")
    share = models.FloatField(default=0)
    made = models.JSONField(null=True, blank=True)
    artifact = models.ForeignKey(Artifact, null=True, blank=True, on_delete=models.SET_NULL)

    class Meta(Job.Meta):
        abstract = False

    @property
    def wanted(self) -> Wanted:
        return Wanted.model_validate(self.plan)
