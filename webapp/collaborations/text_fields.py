"""Fields about several texts: one a line, and the share of each."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django import forms

from trainer.parts import NAMES_USER, names_user

MOST_WEIGHT = 1e6
BETWEEN = re.compile(r"[\s;]+|,\s+")


class LinesField(forms.CharField):
    """Its clean value is a list of what `clean_line` makes of each line that is not empty."""

    def __init__(self, **given: Any) -> None:
        super().__init__(widget=forms.Textarea(attrs={"rows": 2}), **given)

    def clean(self, value: Any) -> list[Any]:
        lines = [line.strip() for line in super().clean(value).splitlines()]
        return [self.clean_line(line) for line in lines if line]

    def clean_line(self, line: str) -> Any:
        """Raises ValidationError."""
        raise NotImplementedError


class AddressesField(LinesField):
    """Addresses of the web; https where a line does not say."""

    def clean_line(self, line: str) -> str:
        address: str = forms.URLField(assume_scheme="https", max_length=500).clean(line)
        if names_user(address):
            raise forms.ValidationError(f"{urlsplit(address).hostname}: {NAMES_USER}.")
        return address


class WeightsField(forms.CharField):
    """Its clean value is a list of positive numbers, or [] where nothing is written.

    Its initial value is {key of a text: weight}, which is shown in the order of `keys`.
    """

    keys: Sequence[str] = ()

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return " ".join(f"{value[key]:g}" for key in self.keys)
        return value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)

    def clean(self, value: Any) -> list[float]:
        return [_weight(word) for word in BETWEEN.split(super().clean(value)) if word]


def _weight(word: str) -> float:
    try:
        weight = float(word)
    except ValueError:
        weight = math.nan
    if not 0 < weight <= MOST_WEIGHT:
        raise forms.ValidationError(
            f"{word[:40]!r} is no share: write a number above 0 for each text, like 0.23 0.77."
        )
    return weight
