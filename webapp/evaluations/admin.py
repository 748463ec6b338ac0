from __future__ import annotations

from django.contrib import admin

from webapp.core.admin import ReadOnly
from webapp.evaluations.models import Baseline, Evaluation, Start, Task


@admin.register(Task)
class TaskAdmin(ReadOnly):
    list_display = ("title", "collaboration", "kind", "every", "created_at")
    list_filter = ("kind",)
    search_fields = ("title",)
    list_select_related = ("collaboration",)


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnly):
    list_display = ("title", "round", "state", "reason", "created_at")
    list_filter = ("state",)
    search_fields = ("title",)


@admin.register(Start)
class StartAdmin(ReadOnly):
    list_display = ("evaluation", "number", "scores")
    list_select_related = ("evaluation",)


@admin.register(Baseline)
class BaselineAdmin(ReadOnly):
    list_display = ("name", "task", "score", "std", "source")
    search_fields = ("name",)
    list_select_related = ("task",)
