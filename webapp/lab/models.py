"""Experiments of organisers, with their results."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from trainer.experiment import Experiment


class State(models.TextChoices):
    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class Trial(models.Model):
    """One experiment, done once. `result` is `python -m trainer simulate`'s, as far as it came.

    `heard_at` is when the job that does it last gave a sign of life.
    """

    title = models.CharField(max_length=80)
    organiser = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    plan = models.JSONField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING, db_index=True)
    reason = models.CharField(max_length=300, blank=True)
    doing = models.CharField(max_length=200, blank=True)
    rounds_done = models.PositiveIntegerField(default=0)
    result = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    heard_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.title

    @property
    def experiment(self) -> Experiment:
        return Experiment.model_validate(self.plan)

    @property
    def is_over(self) -> bool:
        return self.state not in (State.WAITING, State.RUNNING)

    @property
    def num_rounds(self) -> int:
        experiment = self.experiment
        return experiment.num_runs * experiment.rounds
