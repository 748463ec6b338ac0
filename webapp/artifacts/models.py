"""Files the site serves by their hash: tokenizers, texts, bases, checkpoints."""

from __future__ import annotations

from django.db import models


class Kind(models.TextChoices):
    TOKENIZER = "tokenizer", "Tokenizer"
    TEXT = "text", "Text"
    CHECKPOINT = "checkpoint", "Checkpoint"
    MODEL = "model", "Model"  # a checkpoint as others load it, packed
    BASE = "base", "Base"  # its description
    WEIGHTS = "weights", "Weights"  # a file of a base


class Artifact(models.Model):
    """`path` is relative to the artifacts storage."""

    kind = models.CharField(max_length=12, choices=Kind)
    sha256 = models.CharField(max_length=64, unique=True)
    size_bytes = models.PositiveBigIntegerField()
    filename = models.CharField(max_length=120)
    path = models.CharField(max_length=300)
    title = models.CharField(max_length=120, blank=True)
    credit = models.CharField(max_length=300, blank=True)
    vocab_size = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.title or self.filename


OF_CHECKPOINTS = (Kind.CHECKPOINT, Kind.MODEL)


class Checkpoint(models.Model):
    """`artifact` is what the coordinator wrote, `model` the same as others load it, if that was
    made. Both are null once it is retired; `sha256` and `size_bytes` tell then what it was.
    """

    collaboration = models.ForeignKey(
        "collaborations.Collaboration", on_delete=models.CASCADE, related_name="checkpoints"
    )
    artifact = models.ForeignKey(Artifact, null=True, on_delete=models.SET_NULL)
    model = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    round = models.PositiveBigIntegerField(db_index=True)
    loss = models.FloatField(null=True, blank=True)
    is_pinned = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    size_bytes = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["-round", "-pk"]

    def __str__(self) -> str:
        return f"round {self.round}"

    @property
    def file(self) -> Artifact:
        """Of one that is kept."""
        assert self.artifact is not None, "a retired checkpoint has no file"
        return self.artifact
