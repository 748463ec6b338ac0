"""The organiser's form, filled in."""

from __future__ import annotations

from webapp.artifacts import selectors
from webapp.artifacts.bases import offered_bases
from webapp.collaborations.forms import CollaborationForm


def filled(files, **changed):
    offered = {
        "tokenizers": selectors.tokenizers(),
        "texts": selectors.texts(),
        "bases": offered_bases(),
    }
    form = CollaborationForm(**offered)
    data = {name: field.initial for name, field in form.fields.items() if field.initial is not None}
    data |= {
        "title": "Night shift",
        "family": "causal",
        "strategy": "dedloc",
        "tokenizer": files["tokenizer"].sha256,
        "texts": [files["text"].sha256],
        "held_out": files["held_out"].sha256,
    }
    return CollaborationForm(data | changed, **offered)
