"""What checkpoints are tested with, what came of it, and what others reached."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from webapp.artifacts.models import Artifact, Checkpoint
from webapp.collaborations.models import Collaboration
from webapp.core.jobs import Job


class Kind(models.TextChoices):
    PERPLEXITY = "perplexity", "Perplexity of a text"
    TAGS = "tags", "Tags of words (CoNLL)"
    CLASSES = "classes", "Classes of texts (CSV, JSONL)"


class Task(models.Model):
    """A test of a collaboration's checkpoints: of the first one in every `every` rounds (0: only
    by hand). Its data are `text`, what is called `file` in the site's folder for such, or the
    `dataset` of a hub: its words and `columns` are as `python -m trainer evaluate` takes them.
    """

    collaboration = models.ForeignKey(
        Collaboration, on_delete=models.CASCADE, related_name="evaluation_tasks"
    )
    title = models.CharField("name", max_length=80)
    kind = models.CharField("what it is", max_length=12, choices=Kind)
    text = models.ForeignKey(Artifact, null=True, blank=True, on_delete=models.SET_NULL)
    file = models.CharField(max_length=200, blank=True)
    dataset = models.CharField(
        "data set of a hub",
        max_length=300,
        blank=True,
        help_text="Instead of data of the site: unimelb-nlp/wikiann bn train test. What is after "
        "the name may be left out.",
    )
    columns = models.CharField(
        "its columns",
        max_length=200,
        blank=True,
        help_text="Where they are not: tokens ner_tags, or: text label.",
    )
    every = models.PositiveIntegerField(
        "every so many rounds", default=0, help_text="0: only when an organiser asks for it."
    )
    starts = models.PositiveSmallIntegerField(
        "random starts",
        default=3,
        validators=[MinValueValidator(3), MaxValueValidator(50)],
        help_text="Of tags and classes.",
    )
    epochs = models.PositiveSmallIntegerField(
        default=5, validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    rate = models.FloatField(
        "learning rate", default=3e-4, validators=[MinValueValidator(1e-7), MaxValueValidator(1)]
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["collaboration", "title"], name="one_task_of_a_name")
        ]

    def __str__(self) -> str:
        return self.title


class Evaluation(Job):
    """One checkpoint with one task, once. The checkpoint may be retired later; `round` and
    `sha256` say which it was. `basis`: what its starts are of, as the trainer says it."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="evaluations")
    checkpoint = models.ForeignKey(Checkpoint, null=True, on_delete=models.SET_NULL)
    round = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    share = models.FloatField(default=0)
    basis = models.CharField(max_length=64, blank=True)
    result = models.JSONField(null=True, blank=True)

    class Meta(Job.Meta):
        abstract = False
        constraints = [
            models.UniqueConstraint(fields=["task", "sha256"], name="one_evaluation_of_each")
        ]


class Start(models.Model):
    """What one random start of an evaluation reached, once; it outlives the program that did it."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="starts")
    number = models.PositiveSmallIntegerField()
    scores = models.JSONField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "number"], name="one_result_of_a_start")
        ]


class Baseline(models.Model):
    """What somebody else's model reached, as an organiser knows it."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="baselines")
    name = models.CharField(max_length=80)
    score = models.FloatField(help_text="As the table shows it: accuracy and F1 in percent.")
    std = models.FloatField("±", null=True, blank=True, validators=[MinValueValidator(0)])
    source = models.CharField("where that is said", max_length=300, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["task", "name"], name="one_baseline_of_a_name")
        ]

    def __str__(self) -> str:
        return self.name
