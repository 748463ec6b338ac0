"""Data sets of a hub as an organiser writes them: name, configuration, split and column a line."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from pydantic import ValidationError

from trainer.parts import DataSet, first_problem
from webapp.collaborations.text_fields import LinesField

EXAMPLE = "wikimedia/wikipedia 20231101.bn train text"


class DataSetsField(LinesField):
    """Its clean value is a list of DataSet."""

    def clean_line(self, line: str) -> DataSet:
        try:
            return dataset_of(line.split())
        except ValidationError as error:
            raise forms.ValidationError(
                f"Write it like {EXAMPLE}; what is after the name may be left out. "
                f"Here: {first_problem(error)}."
            ) from error


def dataset_of(words: Sequence[str]) -> DataSet:
    """From NAME or NAME@REVISION, configuration, split and column. Raises ValidationError."""
    name, config, split, *column = *words, *("default", "train")[max(0, len(words) - 1) :]
    return DataSet.called(name, config=config, split=split, column=" ".join(column))


def words_of(dataset: DataSet) -> str:
    """As `dataset_of` takes them."""
    return " ".join((dataset.word, dataset.config, dataset.split, dataset.column)).strip()
