"""A collaboration that runs when its site is updated goes on: its recipe keeps its hash."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trainer.parts import DataSet
from trainer.recipe import Choice, File, Optimizer, Recipe, Text, Tokenizer

FILE = File(sha256="0" * 64, size_bytes=1, filename="f")
OLD = Recipe(
    collaboration="tiny",
    family=Choice(name="albert", params={"hidden": 32}),
    strategy=Choice(name="dedloc"),
    tokenizer=Tokenizer(file=FILE, vocab_size=64),
    texts=(Text(kind="site", file=FILE), Text(kind="http", url="https://example.org/t.txt")),
    held_out=Text(kind="site", file=FILE),
)
# As it was before there were LAMB, data sets of a hub, and passes in 16 bits.
HASH_OF_OLD = "9370d4183cd757e3ab80132c5a0c46c82a4f3cdcd08d057a99b89fea3d2e2c3a"


def test_what_came_later_leaves_no_trace_in_a_recipe_that_does_without():
    assert OLD.sha256() == HASH_OF_OLD


def test_an_address_in_a_recipe_has_no_password():
    with pytest.raises(ValidationError, match="a name or a password in it"):
        Text(kind="http", url="https://olga:secret@example.org/t.txt")
    at = "https://example.org/@olga/t.txt?for=a@b"
    assert Text(kind="http", url=at).url == at


def of_hub(**more: str) -> Text:
    return Text(kind="datasets", dataset=DataSet(name="of/somebody", **more))


def test_a_recipe_that_has_it_is_another_one():
    hub, pinned = of_hub(), OLD.model_copy(update={"texts": (of_hub(revision="0f" * 20),)})
    assert '"revision"' in pinned.canonical()
    changed = [
        OLD.model_copy(update={"optimizer": Optimizer(kind="lamb")}),
        OLD.model_copy(update={"precision": "mixed"}),
        OLD.model_copy(update={"texts": (hub,)}),
        OLD.model_copy(update={"held_out": hub}),
        pinned,
    ]
    assert "revision" not in changed[2].canonical()
    assert len({recipe.sha256() for recipe in (OLD, *changed)}) == 6
