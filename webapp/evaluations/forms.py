"""The forms of a task and of a baseline."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.collaborations.models import Collaboration
from webapp.evaluations import data
from webapp.evaluations.models import Baseline, Task


class TaskForm(forms.ModelForm):  # type: ignore[type-arg]
    """After `is_valid()`, `instance` is the task, not saved yet."""

    class Meta:
        model = Task
        fields = ["title", "kind", "every", "starts", "epochs", "rate"]

    def __init__(self, collaboration: Collaboration, given: Any = None) -> None:
        super().__init__(given, instance=Task(collaboration=collaboration))
        self.fields["data"] = forms.ChoiceField(
            choices=data.choices(), help_text="A file; a folder with train.* and test.*; or a text."
        )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if value := cleaned.get("data"):
            self.instance.text, self.instance.file = data.chosen(value)
        return cleaned


class BaselineForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Baseline
        fields = ["name", "score", "std", "source"]

    def __init__(self, task: Task, given: Any = None) -> None:
        super().__init__(given, instance=Baseline(task=task), prefix=f"baseline-{task.pk}")
