"""Files the site serves by their hash: tokenizers, texts, bases, checkpoints."""

from __future__ import annotations

from django.db import models


class Kind(models.TextChoices):
    TOKENIZER = "tokenizer", "Tokenizer"
    TEXT = "text", "Text"
    CHECKPOINT = "checkpoint", "Checkpoint"
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


class Checkpoint(models.Model):
    collaboration = models.ForeignKey(
        "collaborations.Collaboration", on_delete=models.CASCADE, related_name="checkpoints"
    )
    artifact = models.OneToOneField(Artifact, on_delete=models.CASCADE)
    round = models.PositiveBigIntegerField(db_index=True)
    loss = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-round"]

    def __str__(self) -> str:
        return f"round {self.round}"
