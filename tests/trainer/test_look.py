"""What a recipe makes of its texts, as `python -m trainer data` shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.factories import make_file, make_recipe
from tests.trainer.test_data import TEXTS
from trainer.commands import main
from trainer.recipe import Choice, Recipe, Text, Tokenizer
from trainer.text.tokenizer import train_tokenizer


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    train_tokenizer(TEXTS, tmp_path / "tokenizer.json", 300)
    return tmp_path / "tokenizer.json"


def recipe_of(family: str = "albert", **fields) -> Recipe:
    tokenizer = Tokenizer(file=make_file(filename="tokenizer.json"), vocab_size=300)
    fields = {"sequence_length": 32, "micro_batch": 4, **fields}
    return make_recipe(family=Choice(name=family), tokenizer=tokenizer, **fields)


def looked_at(recipe: Recipe, tokenizer: Path, capsys, *more: str) -> dict:
    file = tokenizer.parent / "recipe.json"
    file.write_text(recipe.canonical())
    assert main(["data", str(file), "--tokenizer", str(tokenizer), *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_ten_batches_are_shown_with_what_is_masked_and_what_was_counted(
    tokenizer, tmp_path, capsys
):
    (tmp_path / "text").write_bytes("\n".join([*TEXTS, TEXTS[0], "", "x"]).encode() + b"\n\xff\n")
    found = looked_at(recipe_of(), tokenizer, capsys, "--text", f"1={tmp_path / 'text'}")
    assert len(found["batches"]) == 10 and found["samples"] == 40
    assert found["padding_share"] == 0 and 0.08 < found["target_share"] < 0.22
    parts = [part for batch in found["batches"] for row in batch for part in row["parts"]]
    hidden = [part for part in parts if part["hidden"] is not None]
    assert sum(part["text"] == "[MASK]" for part in hidden) / len(hidden) > 0.6
    assert any("alpha beta" in part["text"] or "gamma" in part["text"] for part in parts)
    (text,) = found["texts"]
    assert text["documents"] == len(TEXTS) + 2 and text["problem"] == ""
    assert text["duplicates"] == len(TEXTS) + 2 - len({*TEXTS, "x"})
    assert (text["broken"], text["empty"]) == (1, 1)
    assert text["first_broken"].endswith(f" of {tmp_path / 'text'}")


def test_a_causal_model_has_plain_texts_and_no_masks(tokenizer, tmp_path, capsys):
    (tmp_path / "text").write_text("\n".join(TEXTS))
    found = looked_at(recipe_of("causal"), tokenizer, capsys, "--text", f"1={tmp_path / 'text'}")
    assert found["target_share"] is None
    assert all(len(row["parts"]) == 1 for batch in found["batches"] for row in batch)


def test_a_prefix_is_shown_apart_from_what_is_to_be_written_after_it(tokenizer, tmp_path, capsys):
    (tmp_path / "text").write_text("\n".join(TEXTS))
    text = f"1={tmp_path / 'text'}"
    found = looked_at(recipe_of("prefix"), tokenizer, capsys, "--text", text)
    rows = [row for batch in found["batches"] for row in batch]
    assert len(rows) == 20 and all(row["written"] and row["parts"][0]["text"] for row in rows)
    assert len({len(row["written"]) for row in rows}) > 5


def test_what_cannot_be_read_is_told_and_the_others_are_shown(tokenizer, tmp_path, capsys):
    (tmp_path / "text").write_text("\n".join(TEXTS))
    texts = (
        Text(kind="local", path=str(tmp_path / "text")),
        Text(kind="local", path=str(tmp_path / "gone")),
        Text(kind="site", file=make_file(b"x", "train.jsonl")),
        Text(kind="private"),
    )
    more = [f"--text=2={tmp_path / 'gone'}", f"--text=3={tmp_path / 'text'}"]
    found = looked_at(recipe_of(texts=texts), tokenizer, capsys, *more)
    problems = [text["problem"] for text in found["texts"]]
    assert problems[0] == problems[3] == "It lies on each device, not here."
    assert "No such file" in problems[1] and problems[2] == ""
    assert len(found["batches"]) == 10
    nothing = looked_at(recipe_of(texts=texts[3:]), tokenizer, capsys)
    assert nothing["batches"] == [] and nothing["padding_share"] == 0


def test_a_recipe_or_tokenizer_that_is_none_is_refused_in_words(tokenizer, tmp_path, capsys):
    (tmp_path / "recipe.json").write_text("{}")
    words = ["data", str(tmp_path / "recipe.json"), "--tokenizer", str(tokenizer)]
    assert main(words) == 1
    assert "The recipe cannot be used: collaboration" in capsys.readouterr().err
    (tmp_path / "recipe.json").write_text(recipe_of().canonical())
    tokenizer.write_text("{")
    assert main(words) == 1
    assert "is not a tokenizer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("x", "--text x: write it as NUMBER=FILE, like 1=poems.txt."),
        ("1", "--text 1: write it as NUMBER=FILE"),
        ("1=", "--text 1=: write it as NUMBER=FILE"),
        ("poems.txt=1", "--text poems.txt=1: write it as NUMBER=FILE"),
        ("5=x", "--text 5=x: the recipe has no text 5, its last is text 1."),
        ("0=x", "--text 0=x: the recipe has no text 0"),
    ],
)
def test_a_text_that_the_recipe_does_not_have_is_refused_in_words(
    tokenizer, tmp_path, capsys, word, says
):
    (tmp_path / "recipe.json").write_text(recipe_of().canonical())
    words = ["data", str(tmp_path / "recipe.json"), "--tokenizer", str(tokenizer)]
    assert main([*words, "--text", word]) == 1
    assert says in capsys.readouterr().err
