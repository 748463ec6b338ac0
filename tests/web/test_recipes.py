"""The files of recipes/: each is a recipe, and says what was published."""

from __future__ import annotations

import pytest

from trainer import catalogue
from webapp.core.errors import UserError
from webapp.recipes import corpora, ready
from webapp.recipes.tasks import HELD_OUT

NAMES = ready.names()
PUBLISHED = {
    "Named entities (WikiANN, Bengali)": {
        "sahajBERT": (95.45, 0.53),
        "XLM-R-large (559 M parameters)": (96.48, 0.22),
        "IndicBert": (92.52, 0.45),
        "bnRoBERTa": (82.32, 0.67),
    },
    "News categories (Soham, Bengali)": {
        "sahajBERT": (91.97, 0.47),
        "XLM-R-large (559 M parameters)": (90.05, 0.38),
        "IndicBert": (74.46, 1.91),
        "bnRoBERTa": (80.94, 0.45),
    },
}


def test_the_three_recipes_are_there():
    assert NAMES == ["demo-causal", "demo-en", "sahajbert-bn"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("offline", [False, True])
def test_every_recipe_can_be_trained_and_names_data_that_exist(name, offline):
    found = ready.read(name, offline=offline)
    catalogue.check(found.outline())
    known = {*corpora.labelled(), HELD_OUT}
    for text in found.texts:
        assert text.kind == "datasets" or text.name in corpora.texts()
    if not found.needs_a_hub:
        assert {task.data for task in found.tasks} <= known
    if offline:
        assert not found.needs_a_hub and found.offline is None


def test_sahajbert_is_the_published_model_with_its_published_configuration():
    recipe = ready.read("sahajbert-bn").outline()
    assert catalogue.trained_parameters(recipe) == 18_105_474
    optimizer = recipe.optimizer
    assert (optimizer.kind, optimizer.learning_rate, optimizer.warmup_rounds) == (
        "lamb",
        0.00176,
        5000,
    )
    assert recipe.round.target_samples == 4096 and recipe.sequence_length == 512
    assert {text.dataset.name: text.weight for text in recipe.texts} == {
        "wikimedia/wikipedia": 0.23,
        "oscar-corpus/oscar": 0.77,
    }
    assert all(text.credit for text in recipe.texts)


def test_sahajberts_published_table_is_complete_and_has_its_source():
    tasks = ready.read("sahajbert-bn").tasks
    assert {task.title: {b.name: (b.score, b.std) for b in task.baselines} for task in tasks} == (
        PUBLISHED
    )
    assert all(b.source.startswith("https://") for task in tasks for b in task.baselines)


def test_the_reduced_form_is_called_neither_ner_nor_news_and_has_no_published_figures():
    found = ready.read("sahajbert-bn", offline=True)
    words = " ".join([found.title, found.summary, *(task.title for task in found.tasks)]).lower()
    assert not any(word in words for word in ("entit", "ner ", "news"))
    assert all(task.baselines == () for task in found.tasks)
    assert catalogue.trained_parameters(found.outline()) < 2_000_000


def test_of_the_reduced_form_single_values_of_the_recipe_change_and_the_others_stay():
    whole, reduced = (ready.read("sahajbert-bn", offline=o).outline() for o in (False, True))
    assert (reduced.optimizer.kind, reduced.optimizer.schedule) == ("lamb", "linear")
    assert reduced.optimizer.total_rounds != whole.optimizer.total_rounds
    assert reduced.round.codec == whole.round.codec


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("hidden = 128", "hidden = 127"), "hidden (127) must be a multiple of heads"),
        (('name = "causal"', 'name = "unheard_of"'), "'unheard_of' is not in families"),
        (("size = 4096", "size = 4096\nsecret = 1"), "tokenizer.pairs.secret: Extra inputs"),
        (('kind = "package"', 'kind = "paper"'), "'paper'"),
        (("title =", "title "), "is not TOML"),
        (('data = "held-out"', 'data = ""'), "names data, or a dataset of a hub"),
        (("target_samples = 128", "target_samples = 0"), "greater than or equal to 1"),
    ],
)
def test_a_broken_file_is_told_by_its_name_with_what_is_wrong(tmp_path, monkeypatch, changed, said):
    text = (ready.FOLDER / "demo-causal.toml").read_text()
    assert changed[0] in text
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "mine.toml").write_text(text.replace(*changed, 1))
    monkeypatch.setattr(ready, "FOLDER", folder)
    with pytest.raises(UserError) as raised:
        ready.read("mine")
    assert said in str(raised.value) and "recipes/mine.toml" in str(raised.value)
