"""The fields of the organiser's form that are shown together, in the order to show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django import forms

from trainer import catalogue
from webapp.collaborations.recipe_parts import TITLES
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


def sections_of(
    form: forms.Form, folders: Mapping[str, str], parts: Iterable[str]
) -> list[Section]:
    """Plain fields, those of each plug-in in `folders` (by its field), and the recipe's `parts`."""

    def starting_with(start: str) -> list[forms.BoundField]:
        return [form[name] for name in form.fields if name.startswith(start)]

    plain = [form[name] for name in form.fields if "__" not in name]
    made = [Section("What it is", plain)]
    for of, folder in folders.items():
        for name, plugin in catalogue.plugins(folder).items():
            section = Section(plugin.label, starting_with(f"{of}__{name}__"), of, name)
            if section.fields or section.rule:
                made.append(section)
    return made + [Section(TITLES[part], starting_with(f"{part}__")) for part in parts]
