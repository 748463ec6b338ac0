"""The form of an experiment: its fields and bounds are those of `trainer.experiment`."""

from __future__ import annotations

from typing import Any

from django import forms
from pydantic import ValidationError

from trainer import catalogue
from trainer.experiment import Experiment
from trainer.recipe import Choice
from webapp.collaborations.schema_fields import fields_of, values_of

PREFIX = "plan"
FIXED = f"{PREFIX}__format"
USUAL = ["fedavg", "fedprox", "scaffold"]


class ExperimentForm(forms.Form):
    """After `is_valid()`, `experiment` is the checked one. Strategies have their own defaults, but
    where `like` is given, those that it names are as they are there.
    """

    title = forms.CharField(max_length=80, required=False, help_text="Left empty, it is the split.")
    strategies = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, help_text="Compared on the same texts and people."
    )

    def __init__(self, data: Any = None, *, like: Experiment | None = None) -> None:
        super().__init__(data, initial=_initial_of(like) if like else None)
        self._known = {choice.name: choice for choice in like.strategies} if like else {}
        self.experiment: Experiment | None = None
        field = self.fields["strategies"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = catalogue.choices("strategies")
        field.initial = USUAL
        self.fields |= {n: f for n, f in fields_of(Experiment, PREFIX).items() if n != FIXED}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        names = cleaned["strategies"]
        choices = [self._known.get(name, Choice(name=name)) for name in names]
        try:
            self.experiment = Experiment.model_validate(
                {"strategies": choices, **values_of(cleaned, PREFIX)}
            )
        except ValidationError as error:
            for problem in error.errors():
                name = "__".join([PREFIX, *map(str, problem["loc"])])
                text = problem["msg"].removeprefix("Value error, ")
                self.add_error(name if name in self.fields else None, text)
        return cleaned


def _initial_of(experiment: Experiment) -> dict[str, Any]:
    plain = experiment.model_dump(exclude={"strategies", "format"})
    names = [choice.name for choice in experiment.strategies]
    return {f"{PREFIX}__{name}": value for name, value in plain.items()} | {"strategies": names}
