"""The organiser's form makes a checked recipe from plain input."""

from __future__ import annotations

import pytest

from tests.web.filled import empty, filled
from trainer.recipe import DataSet, Text
from webapp.collaborations.dataset_field import dataset_of
from webapp.collaborations.prefill import initial_of
from webapp.collaborations.sizes import size_of


def test_the_defaults_of_the_form_make_a_recipe_with_the_defaults_of_the_recipe(files, olga):
    form = filled(files)
    assert form.is_valid(), form.errors
    collaboration = form.save(by=olga)
    assert collaboration.slug == "night-shift"
    assert collaboration.state == "draft"
    assert collaboration.text_credit == "Wikipedia, CC BY-SA 4.0"
    recipe = collaboration.recipe
    assert recipe.family.name == "causal"
    assert recipe.round.target_samples == 256
    assert recipe.tokenizer.vocab_size == 4096
    assert recipe.sha256() == collaboration.revision.sha256


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"title": ""}, "title", "required"),
        ({"family": "nothing"}, "family", "Select a valid choice"),
        ({"optimizer__learning_rate": "7"}, "optimizer__learning_rate", "less than or equal"),
        ({"optimizer__learning_rate": "0"}, "optimizer__learning_rate", "greater than 0"),
        ({"optimizer__learning_rate": "nan"}, "optimizer__learning_rate", "Enter a number"),
        ({"round__target_samples": "4", "micro_batch": "8"}, None, "smaller than micro_batch"),
        ({"family__causal__heads": "3"}, None, "multiple of heads"),
        ({"participation__share": "0.5"}, None, "set it to 1 or chosen_by to lot or speed"),
        ({"strategy": "fedavg", "strategy__fedavg__local_momentum": "0.9"}, None, "choose sgd"),
        (
            {"strategy": "fednova", "strategy__fednova__local_optimizer": "adamw"},
            None,
            "choose sgd",
        ),
        (
            {"strategy__diloco__outer_momentum": "2"},
            "strategy__diloco__outer_momentum",
            "less than",
        ),
        (
            {"strategy": "diloco", "strategy__diloco__outer_momentum": "1"},
            "strategy__diloco__outer_momentum",
            "less than 1",
        ),
        ({"slug": "-"}, "slug", "letters a-z, digits and hyphens"),
        ({"slug": "_x"}, "slug", "letters a-z, digits and hyphens"),
        ({"sequence_length": "4096"}, None, "do not fit a model"),
        ({"texts": []}, "texts", "Choose a text"),
        ({"held_out": "", "finish__held_out_loss": "3"}, "finish__held_out_loss", "held-out text"),
        ({"held_out": "", "finish__patience_rounds": "9"}, "finish__patience_rounds", "held-out"),
        (
            {"round__matchmaking_s": "120", "round__deadline_s": "2"},
            "round__matchmaking_s",
            "for 120 s in rounds of at most 2 s",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_named_at_its_field(files, changed, field, words):
    form = filled(files, **changed)
    assert not form.is_valid()
    assert words in str(form.errors.get(field or "__all__", form.errors))


def test_every_strategy_is_offered_and_its_defaults_make_a_recipe(files):
    offered = [name for name, _label in filled(files).fields["strategy"].choices]
    known = {"dedloc", "fedavg", "fedprox", "fednova", "scaffold", "diloco"}
    assert known <= set(offered)
    for name in offered:
        form = filled(files, strategy=name)
        assert form.is_valid(), form.errors
        assert form.recipe.strategy.name == name


def test_a_strategy_has_the_parameters_that_the_organiser_gave(files):
    given = {"local_optimizer": "sgd", "most_local_steps": "500", "weigh_by": "equal"}
    fields = {f"strategy__diloco__{name}": value for name, value in given.items()}
    form = filled(files, strategy="diloco", **fields)
    assert form.is_valid(), form.errors
    assert form.recipe.strategy.params == {
        **given,
        "local_momentum": 0.0,
        "most_local_steps": 500,
        "most_training_s": 0.0,
        "most_passes": 0.0,
        "outer_learning_rate": 0.7,
        "outer_momentum": 0.9,
    }


def test_a_text_cannot_be_trained_on_and_held_out(files):
    form = filled(files, held_out=files["text"].sha256)
    assert "trained on" in str(form.errors["held_out"])


def test_volunteers_own_texts_may_be_all_there_is(files, olga):
    form = filled(files, texts=[], held_out="", own_texts="on", strategy="fedavg")
    assert form.is_valid(), form.errors
    assert form.recipe.is_private and form.recipe.texts == (Text(kind="private"),)
    both = filled(files, own_texts="on")
    assert both.is_valid() and [text.kind for text in both.recipe.texts] == ["site", "private"]


@pytest.mark.parametrize(
    ("typed", "dataset"),
    [
        ("org/name", DataSet(name="org/name")),
        ("name bn", DataSet(name="name", config="bn")),
        (f"a/b@{'0f' * 20} c", DataSet(name="a/b", config="c", revision="0f" * 20)),
        ("a/b 20231101.bn train", DataSet(name="a/b", config="20231101.bn", split="train")),
        (" a/b  c d the text ", DataSet(name="a/b", config="c", split="d", column="the text")),
    ],
)
def test_a_data_set_of_a_hub_is_named_in_words_and_comes_back_in_them(files, olga, typed, dataset):
    form = filled(files, texts=[], dataset=typed)
    assert form.is_valid(), form.errors
    assert form.recipe.texts == (Text(kind="datasets", dataset=dataset),)
    again = initial_of(form.save(by=olga))["dataset"]
    assert dataset_of(again.split()) == dataset


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("a/b/c", "name: as org/name or name, each at most 96 letters, digits"),
        ("https://x.org/d", "name: as org/name"),
        ("a/b c/d", "config: at most 120 letters, digits, dots, dashes"),
        ("a/b c d/e", "split: at most 120 letters"),
        ("a/b c d" + " x" * 100, "column: String should have at most 120 characters"),
        ("../x", "the first no dot or dash"),
        ("a/..", "name: as org/name"),
        ("a/b ..", "config: at most 120"),
        ("-h", "name: as org/name"),
        ("a/b@", "revision: 40 hex digits (0-9, a-f)"),
        ("a/b@main", "revision: 40 hex digits (0-9, a-f)"),
    ],
)
def test_a_data_set_that_cannot_be_one_is_refused_in_words_with_an_example(files, typed, says):
    form = filled(files, texts=[], dataset=typed)
    assert set(form.errors) == {"dataset"}  # and no word of texts that are missing
    said = str(form.errors["dataset"])
    assert "wikimedia/wikipedia 20231101.bn" in said and says in said and "pattern" not in said


def test_texts_are_mixed_by_the_shares_that_are_written_and_shown_with_them_again(files, olga):
    named = {"text_url": "example.org/b.txt\n", "dataset": "org/wiki bn\norg/oscar bn\n\n"}
    form = filled(files, **named, weights="1, 0.5 0.23 0.77")
    assert form.is_valid(), form.errors
    texts = form.recipe.texts
    assert [text.weight for text in texts] == [1, 0.5, 0.23, 0.77]
    assert [text.kind for text in texts] == ["site", "http", "datasets", "datasets"]
    assert texts[1].url == "https://example.org/b.txt" and texts[3].dataset.name == "org/oscar"

    draft = form.save(by=olga)
    again = initial_of(draft)
    shown = empty(again)
    assert shown["weights"].value() == "1 0.5 0.23 0.77"
    data = {name: shown[name].value() for name in ("text_url", "dataset", "weights")}
    second = filled(files, initial=again, slug="again", **data)
    assert second.is_valid() and second.recipe.texts == texts
    assert {"weights", "text_url", "dataset"}.isdisjoint(second.changed_data)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("1 2", "There are 1 texts and 2 shares"),
        ("0", "is no share"),
        ("-1", "is no share"),
        ("nan", "is no share"),
        ("1e9", "is no share"),
        ("half", "is no share"),
    ],
)
def test_shares_that_are_none_are_refused(files, typed, words):
    assert words in str(filled(files, weights=typed).errors["weights"])


def test_whose_a_text_on_the_web_is_stays_known_in_a_copy(files):
    given = {"text_url": "https://example.org/a\nhttps://example.org/b"}
    known = {"credits": {"https://example.org/b": "B, CC BY 4.0"}}
    form = filled(files, initial=known, **given)
    assert form.is_valid(), form.errors
    assert [text.credit for text in form.recipe.texts[1:]] == ["", "B, CC BY 4.0"]


def test_an_address_that_is_none_is_refused(files):
    assert "valid URL" in str(filled(files, text_url="example.org/a\nnot one").errors["text_url"])


def test_an_address_with_a_password_is_refused_as_all_would_read_it(files):
    form = filled(files, text_url="https://olga:secret@example.org/a")
    error = str(form.errors["text_url"])
    assert "for everybody who may see the recipe" in error and "secret" not in error


def test_a_short_name_is_used_once(files, collaboration):
    form = filled(files, slug=collaboration.slug)
    assert "already" in str(form.errors["slug"])


def test_every_field_is_shown_in_exactly_one_section(files):
    form = filled(files)
    shown = [field.name for section in form.sections() for field in section.fields]
    assert sorted(shown) == sorted(form.fields)


def test_a_model_no_volunteer_could_hold_is_made_only_when_confirmed(files):
    huge = {"family__causal__hidden": "8192", "family__causal__layers": "200"}
    form = filled(files, **huge)
    assert "161 G parameters" in str(form.errors["is_large"]) and "memory" in str(form.errors)
    assert filled(files, **huge, is_large="on").is_valid()


def test_a_strategy_that_offers_two_vectors_moves_twice_the_bytes(files):
    forms = [filled(files, strategy=name) for name in ("fedavg", "scaffold")]
    assert all(form.is_valid() for form in forms)
    one, two = (size_of(form.recipe) for form in forms)
    assert two.round_bytes == 2 * one.round_bytes
    assert two.memory_bytes > one.memory_bytes
