"""The forms of a new tokenizer, with the bounds of `trainer.tokenizing`, and of a preview."""

from __future__ import annotations

from typing import Any

from django import forms
from pydantic import ValidationError

from trainer.tokenizing import PURPOSES, STEPS, Wanted
from webapp.artifacts.models import Artifact
from webapp.artifacts.selectors import texts
from webapp.collaborations.schema_fields import fields_of

USUAL = Wanted()
MOST_CHARACTERS = 5_000


class MakingForm(forms.Form):
    """After `is_valid()`, `wanted` is the checked one, and `chosen` are the texts."""

    title = forms.CharField(
        label="Name", max_length=80, help_text="As the form of a collaboration will show it."
    )
    texts = forms.ModelMultipleChoiceField(
        queryset=Artifact.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        help_text="Those that the model will learn from, as a rule.",
    )
    purpose = forms.ChoiceField(
        label="For", choices=[*PURPOSES.items()], help_text="Decides the special tokens."
    )
    steps = forms.MultipleChoiceField(
        choices=[(name, f"{name}: {summary}") for name, summary in STEPS.items()],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="How each text is written before it is cut, in this order.",
    )

    def __init__(self, data: Any = None, *, like: Wanted | None = None) -> None:
        like = like or USUAL
        super().__init__(data)
        field = self.fields["texts"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        field.queryset = texts()
        self.fields["size"] = fields_of(Wanted, "wanted")["wanted__size"]
        self.initial = {
            "size": like.size,
            "purpose": like.purpose,
            "steps": [name for name in STEPS if name not in like.without],
        }
        self.wanted = USUAL

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            without = [name for name in STEPS if name not in cleaned["steps"]]
            size = cleaned["size"] or USUAL.size
            try:
                self.wanted = Wanted.model_validate(
                    {"size": size, "purpose": cleaned["purpose"], "without": without}
                )
            except ValidationError as error:
                self.add_error("size", error.errors()[0]["msg"])
        return cleaned


class PreviewForm(forms.Form):
    text = forms.CharField(
        max_length=MOST_CHARACTERS,
        strip=False,
        widget=forms.Textarea({"rows": 4}),
        help_text="It is not kept.",
    )
