"""The organisers' form: who sees checkpoints, and which are kept."""

from __future__ import annotations

from django import forms

from webapp.collaborations.models import Collaboration
from webapp.registry.services import RULES


class RulesForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Collaboration
        fields = list(RULES)
