"""Rounds by passes: how many local steps a device takes follows from how much text it has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.trainer.models import make_recipe
from tests.trainer.test_private_texts import folder_of, tokenizer  # noqa: F401 - a fixture
from trainer import catalogue
from trainer.data.survey import survey
from trainer.engine.learner import Learner
from trainer.engine.peer import _own_samples
from trainer.engine.tally import Tally
from trainer.engine.timing import Timing
from trainer.recipe import Choice, Recipe, Text
from trainer.text.tokenizer import Tokenizer

LOCAL = [name for name, one in catalogue.plugins("strategies").items() if one.local]
OWN = (Text(kind="private"),)


def recipe_for(name: str, passes: float, **changes) -> Recipe:
    strategy = Choice(name=name, params={"most_passes": passes})
    return make_recipe(strategy=strategy, **{"texts": OWN, **changes})


def steps_of(recipe: Recipe, own_samples: int) -> int:
    """Local steps until a device with so many samples of its own waits for the others."""
    strategy = catalogue.create("strategies", recipe.strategy)
    loop = SimpleNamespace(
        recipe=recipe,
        peer=SimpleNamespace(coordinators=frozenset()),
        learner=SimpleNamespace(strategy=strategy, full=False, round=0),
        tally=Tally(),
        own_samples=own_samples,
    )
    timing, steps = Timing(loop), 0  # type: ignore[arg-type]
    while not timing.full() and steps < 1000:
        loop.tally.samples += recipe.micro_batch or 1
        steps += 1
    return steps


@pytest.mark.parametrize("name", LOCAL)
def test_the_steps_of_a_round_follow_from_the_samples_a_device_has(name: str):
    """In micro-batches of four; the last one is whole."""
    assert [steps_of(recipe_for(name, 2.0), own) for own in (4, 6, 100)] == [2, 3, 50]
    assert steps_of(recipe_for(name, 0.5), 100) == 13
    assert steps_of(recipe_for(name, 0.0), 100) == 1000  # no limit


def test_the_screen_says_how_often_it_went_through_what():
    loop = SimpleNamespace(
        recipe=recipe_for("fedavg", 2),
        peer=SimpleNamespace(coordinators=frozenset()),
        learner=Learner(recipe_for("fedavg", 2), pad_id=0),
        tally=Tally(samples=2400),
        own_samples=1200,
        turn=SimpleNamespace(rests=False),
    )
    said = Timing(loop).enough()  # type: ignore[arg-type]
    assert said == "went 2 times through its own 1,200 samples; waiting for the others"


def test_what_a_pass_has_is_what_its_owner_was_told_before_joining(
    tmp_path: Path,
    tokenizer: Tokenizer,  # noqa: F811
):
    folder = folder_of(tmp_path / "own")
    for passes, counted in ((1.0, True), (0.0, False)):
        recipe = recipe_for("fedavg", passes)
        job = SimpleNamespace(recipe=recipe, own_text=lambda: folder)
        learner = Learner(recipe, pad_id=0)
        told = survey(folder, tokenizer, learner.family.objective, recipe.sequence_length)
        found = _own_samples(job, learner, tokenizer)  # type: ignore[arg-type]
        assert found == (told.samples if counted else 0)
    nothing = SimpleNamespace(recipe=recipe_for("fedavg", 1), own_text=lambda: None)
    assert _own_samples(nothing, Learner(nothing.recipe, pad_id=0), tokenizer) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LOCAL)
def test_without_texts_of_their_own_passes_make_no_sense(name: str):
    catalogue.check(recipe_for(name, 1.0))
    site = make_recipe().texts
    with pytest.raises(ValueError, match="this recipe trains on none"):
        catalogue.check(recipe_for(name, 1.0, texts=site))
