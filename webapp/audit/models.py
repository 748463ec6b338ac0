"""Who did what, when: written by services, never edited."""

from __future__ import annotations

from django.conf import settings
from django.db import models


def key_of(subject: models.Model) -> str:
    """Kind and key of what was acted on (`device 3f9…`): `Entry.subject`."""
    return f"{subject._meta.model_name} {getattr(subject, 'slug', subject.pk)}"


class Entry(models.Model):
    """`actor_name` and `target` are what they were called then; `about` is whom the target is or
    belongs to. All three lose the person when the account is deleted. No name: the site itself.
    """

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    actor_name = models.CharField(max_length=40, blank=True)
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    target = models.CharField(max_length=200, blank=True)
    about = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="audited",
    )
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "entries"

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
