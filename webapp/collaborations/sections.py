"""Fields of a form that are shown together."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms

from webapp.collaborations.rules import Rule, rule_of


@dataclass(frozen=True)
class Section:
    """With `choice`, shown only while `<select name=of>` has that value."""

    title: str
    fields: list[forms.BoundField]
    of: str = ""
    choice: str = ""

    @property
    def rule(self) -> Rule | None:
        """Of the strategy that these fields are about."""
        return rule_of(self.choice) if self.of == "strategy" else None
