"""A collaboration: one effort to train one model, and its frozen recipes."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from trainer.recipe import Recipe


class State(models.TextChoices):
    DRAFT = "draft", "Draft"
    OPEN = "open", "Open"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"


class Visibility(models.TextChoices):
    EVERYBODY = "everybody", "Everybody"
    VOLUNTEERS = "volunteers", "Its volunteers"
    ORGANISERS = "organisers", "Organisers only"


class Collaboration(models.Model):
    """`swarm_port` and `bootstrap` belong to its coordinator; `round` is the last one seen done.

    `visibility` is of its checkpoints. The last `keep_last` of them are kept, the first one in
    every `keep_every` rounds (0: none for that), and, with `keep_evaluated`, those with a result.
    """

    slug = models.SlugField(max_length=64, unique=True)
    title = models.CharField(max_length=80)
    summary = models.CharField(max_length=300, blank=True)
    text_credit = models.CharField(max_length=300, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT, db_index=True)
    state_reason = models.CharField(max_length=300, blank=True)
    organiser = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    swarm_port = models.PositiveIntegerField(null=True, blank=True, unique=True)
    bootstrap = models.JSONField(default=list, blank=True)
    round = models.PositiveBigIntegerField(default=0)
    visibility = models.CharField(
        "who sees and downloads its checkpoints",
        max_length=10,
        choices=Visibility,
        default=Visibility.EVERYBODY,
        help_text="Devices that train have the model in any case.",
    )
    keep_last = models.PositiveSmallIntegerField(
        "the last so many are kept",
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
    )
    keep_every = models.PositiveIntegerField(
        "and one in every so many rounds", default=0, help_text="0: none is kept for that."
    )
    keep_evaluated = models.BooleanField("and those that were evaluated", default=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.title

    @property
    def revision(self) -> Revision:
        """The newest recipe; there is one from the first moment on."""
        return self.revisions.order_by("-number")[0]

    @property
    def recipe(self) -> Recipe:
        return self.revision.recipe


class Revoked(models.Model):
    """The revocation list as last handed out: one row. `devices` are hex ids, sorted."""

    number = models.PositiveBigIntegerField(default=0)
    devices = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"list {self.number}"


class Revision(models.Model):
    """One immutable recipe. A change of recipe is a new revision."""

    collaboration = models.ForeignKey(
        Collaboration, on_delete=models.CASCADE, related_name="revisions"
    )
    number = models.PositiveIntegerField()
    recipe_json = models.TextField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["collaboration", "number"], name="one_revision_number")
        ]

    def __str__(self) -> str:
        return f"{self.collaboration} r{self.number}"

    @property
    def recipe(self) -> Recipe:
        return Recipe.model_validate_json(self.recipe_json)
