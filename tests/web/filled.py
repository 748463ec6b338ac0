"""The organiser's form, filled in."""

from __future__ import annotations

from webapp.artifacts import selectors
from webapp.artifacts.bases import offered_bases
from webapp.collaborations.forms import CollaborationForm


def empty(initial=None):
    return CollaborationForm(initial=initial, **_offered())


def _offered():
    return {
        "tokenizers": selectors.tokenizers(),
        "texts": selectors.texts(),
        "bases": offered_bases(),
    }


def filled(files, initial=None, **changed):
    form = empty()
    data = {name: field.initial for name, field in form.fields.items() if field.initial is not None}
    data |= {
        "title": "Night shift",
        "family": "causal",
        "strategy": "dedloc",
        "tokenizer": files["tokenizer"].sha256,
        "texts": [files["text"].sha256],
        "held_out": files["held_out"].sha256,
    }
    return CollaborationForm(data | changed, initial=initial, **_offered())
