"""Experiments of organisers, with their results."""

from __future__ import annotations

from django.db import models

from trainer.experiment import Experiment
from webapp.core.jobs import Job
from webapp.core.jobs import State as State


class Trial(Job):
    """One experiment, done once. `result` is `python -m trainer simulate`'s, as far as it came."""

    plan = models.JSONField()
    rounds_done = models.PositiveIntegerField(default=0)
    result = models.JSONField(null=True, blank=True)

    class Meta(Job.Meta):
        abstract = False

    @property
    def experiment(self) -> Experiment:
        return Experiment.model_validate(self.plan)

    @property
    def num_rounds(self) -> int:
        experiment = self.experiment
        return experiment.num_runs * experiment.rounds
