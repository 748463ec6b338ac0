"""The forms of a task and of a baseline."""

from __future__ import annotations

from typing import Any

from django import forms
from pydantic import ValidationError

from trainer.parts import first_problem
from webapp.collaborations.dataset_field import dataset_of
from webapp.collaborations.models import Collaboration
from webapp.core.text import one_line
from webapp.evaluations import data
from webapp.evaluations.models import Baseline, Kind, Task

MOST_SCORE = 10**9
MOST_WORDS = 4  # of a data set
EXAMPLE = "unimelb-nlp/wikiann bn train test"


class LineField(forms.CharField):
    """Without the signs that nobody sees, some of which turn around what is beside them."""

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        return one_line(text, len(text))


class TaskForm(forms.ModelForm):  # type: ignore[type-arg]
    """After `is_valid()`, `instance` is the task, not saved yet."""

    class Meta:
        model = Task
        fields = ["title", "kind", "dataset", "columns", "every", "starts", "epochs", "rate"]
        field_classes = {"title": LineField}

    def __init__(self, collaboration: Collaboration, given: Any = None) -> None:
        super().__init__(given, instance=Task(collaboration=collaboration))
        self.fields["data"] = forms.ChoiceField(
            required=False,
            choices=[("", "–"), *data.choices()],
            help_text="A file; a folder with train.* and test.*; or a text.",
        )
        self.order_fields(["title", "kind", "data"])

    def clean_columns(self) -> str:
        columns: str = self.cleaned_data["columns"]
        if len(columns.split()) not in (0, 2):
            raise forms.ValidationError("Two of them: of words and tags, or of texts and labels.")
        if strange := [word for word in columns.split() if word[0] == "-" or "," in word]:
            raise forms.ValidationError(f"{strange[0]!r} is no column: write them like text label.")
        return columns

    def clean_dataset(self) -> str:
        """A name, configuration and two splits."""
        dataset: str = self.cleaned_data["dataset"]
        words = dataset.split()
        if len(words) > MOST_WORDS:
            raise forms.ValidationError(
                f"Four words at most, like {EXAMPLE}: its name, configuration and two splits. "
                f"Here are {len(words)}."
            )
        try:
            for name in (words[:3], [*words[:2], *words[3:]]):
                if name:
                    dataset_of(name)
        except ValidationError as error:
            raise forms.ValidationError(
                f"Write it like {EXAMPLE}; what is after the name may be left out. "
                f"Here: {first_problem(error)}."
            ) from error
        return dataset

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        value, dataset = cleaned.get("data"), cleaned.get("dataset")
        if value:
            self.instance.text, self.instance.file = data.chosen(value)
        if bool(value) == bool(dataset) and not {"data", "dataset"} & set(self.errors):
            raise forms.ValidationError("Name its data, or a data set of a hub.")
        if cleaned.get("kind") == Kind.PERPLEXITY:
            if dataset:
                self.add_error("dataset", "Perplexity is of a text: choose one as its data.")
            elif value and self.instance.file and (data.folder() / self.instance.file).is_dir():
                self.add_error("data", "Perplexity is of one text, and this is a folder.")
        return cleaned


class ScoreField(forms.FloatField):
    default_error_messages = dict.fromkeys(
        ("invalid", "min_value", "max_value"), f"Enter a number from 0 to {MOST_SCORE:,}."
    )

    def __init__(self, **given: Any) -> None:
        super().__init__(**given, min_value=0, max_value=MOST_SCORE)


class BaselineForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Baseline
        fields = ["name", "score", "std", "source"]
        field_classes = {
            "name": LineField,
            "score": ScoreField,
            "std": ScoreField,
            "source": LineField,
        }

    def __init__(self, task: Task, given: Any = None) -> None:
        super().__init__(given, instance=Baseline(task=task), prefix=f"baseline-{task.pk}")
