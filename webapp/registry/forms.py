"""The organisers' form: who sees checkpoints, and which are kept."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.collaborations.models import Collaboration
from webapp.registry.services import RULES


class RulesForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Collaboration
        fields = list(RULES)

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        for field in self.fields.values():
            field.initial = None  # the page shows what holds now, not what a new one begins with
