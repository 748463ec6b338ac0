"""Form fields made from pydantic models, so that a bound or default is written down once."""

from __future__ import annotations

from typing import Any

from django import forms
from pydantic import BaseModel

UNITS = {"_s": "seconds", "_bytes": "bytes"}
NUMBERS = {"integer": forms.IntegerField, "number": forms.FloatField}


def fields_of(model: type[BaseModel], prefix: str) -> dict[str, forms.Field]:
    """{`<prefix>__<name>`: field} for the plain values of `model`; nested parts are left out.

    A field that may be left empty then has its default.
    """
    properties = model.model_json_schema().get("properties", {})
    made = {f"{prefix}__{name}": _field(name, schema) for name, schema in properties.items()}
    return {name: field for name, field in made.items() if field is not None}


def field_of(model: type[BaseModel], name: str) -> forms.Field:
    """For one plain value of `model`."""
    field = _field(name, model.model_json_schema()["properties"][name])
    assert field is not None, f"{name} is no plain value"
    return field


def values_of(cleaned: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The filled-in values of `fields_of(…, prefix)`, without prefix."""
    start = f"{prefix}__"
    return {
        name.removeprefix(start): value
        for name, value in cleaned.items()
        if name.startswith(start) and value not in (None, "")
    }


def _field(name: str, schema: dict[str, Any]) -> forms.Field | None:
    for option in schema.get("anyOf", []):  # `float | None`
        if option.get("type") != "null":
            schema = option | {key: value for key, value in schema.items() if key != "anyOf"}
    common = {
        "label": _label(name),
        "initial": schema.get("default"),
        "help_text": schema.get("description", ""),
        "required": False,
    }
    if "enum" in schema:
        choices = [(value, str(value).capitalize()) for value in schema["enum"]]
        return forms.ChoiceField(choices=choices, **common)
    kind = schema.get("type")
    if kind in NUMBERS:
        return NUMBERS[kind](
            min_value=schema.get("minimum", schema.get("exclusiveMinimum")),
            max_value=schema.get("maximum", schema.get("exclusiveMaximum")),
            **(
                common | {"widget": forms.NumberInput({"step": "any"})}
                if kind == "number"
                else common
            ),
        )
    if kind == "boolean":
        return forms.BooleanField(**common)
    if kind == "string":
        return forms.CharField(max_length=schema.get("maxLength", 300), **common)
    return None


def _label(name: str) -> str:
    for ending, unit in UNITS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending)} ({unit})".replace("_", " ").capitalize()
    return name.replace("_", " ").capitalize()
