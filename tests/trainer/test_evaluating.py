"""A device that can only measure: what it holds, what it says, and when it is one."""

from __future__ import annotations

import pytest

from tests.trainer.models import make_batch, make_recipe, play_round
from tests.trainer.tiny_bases import adapt, lora, make_base, top_layers
from trainer.agent import evaluating
from trainer.device import memory
from trainer.engine import checkpoint
from trainer.engine.evaluating import Evaluator
from trainer.engine.learner import Learner
from trainer.planner.fit import judge_machine
from trainer.planner.need import need_of
from trainer.planner.ways import Way, ways_of
from trainer.recipe import Choice, File, Text
from trainer.recipe import Tokenizer as Words
from trainer.text.tokenizer import Tokenizer, train_tokenizer

HELD_OUT = Text(kind="site", file=File(sha256="1" * 64, size_bytes=1, filename="held-out.txt"))
MIB, WORDS = 2**20, 320


@pytest.fixture
def tokenizer(tmp_path):
    sentences = [f"the cat {n} sat on the mat" for n in range(100)]
    train_tokenizer(sentences, tmp_path / "tokenizer.json", WORDS)
    (tmp_path / "held-out.txt").write_text("\n".join(sentences))
    return Tokenizer.of(recipe_of("whole"), tmp_path / "tokenizer.json")


def recipe_of(kind, base=None):
    file = File(sha256="0" * 64, size_bytes=1, filename="words.json")
    more = {"held_out": HELD_OUT, "tokenizer": Words(file=file, vocab_size=WORDS)}
    if kind == "whole":
        return make_recipe(**more)
    return adapt(base, adapter=lora() if kind == "lora" else top_layers(1), **more)


@pytest.mark.parametrize("kind", ["whole", "lora", "top"])
def test_it_says_of_a_checkpoint_what_a_peer_says_that_trained_it(tokenizer, tmp_path, kind):
    base = None if kind == "whole" else make_base(tmp_path / "base", vocab_size=WORDS)
    recipe = recipe_of(kind, base)
    learner = Learner(recipe, tokenizer.pad, base)
    for number in range(3):
        play_round(learner, make_batch(number))
    learner.save(path := tmp_path / checkpoint.filename(3))
    evaluator = Evaluator(recipe, tokenizer, tmp_path / "held-out.txt", base)
    loss, tokens = evaluator.measure(path, 1, 4)
    theirs, counted = learner.evaluate(list(evaluator._batches(1, 4)))
    assert tokens == counted > 0
    assert loss / tokens == pytest.approx(theirs, rel=1e-5)
    assert evaluator.measure(path, 1, 4) == (loss, tokens)  # the same masks each time
    assert evaluator.measure(path, 2, 4)[0] != loss


def test_it_holds_the_parameters_and_nothing_to_train_them_with(tokenizer, tmp_path):
    recipe = recipe_of("whole")
    learner = Learner(recipe, tokenizer.pad)
    learner.save(path := tmp_path / checkpoint.filename(0))
    evaluator = Evaluator(recipe, tokenizer, tmp_path / "held-out.txt", None)
    evaluator.measure(path, 0, 4)
    assert all(param.grad is None for param in evaluator._model.parameters())
    planned = {part.name: part.bytes for part in need_of(recipe, way=Way.EVALUATING).parts}
    assert planned["weights"] == sum(p.numel() * 4 for p in evaluator._model.parameters())


def test_a_checkpoint_of_another_recipe_or_model_is_refused(tokenizer, tmp_path):
    recipe = recipe_of("whole")
    Learner(recipe.model_copy(update={"seed": 5}), 0).save(path := tmp_path / "other")
    evaluator = Evaluator(recipe, tokenizer, tmp_path / "held-out.txt", None)
    with pytest.raises(checkpoint.BadCheckpoint, match="another recipe"):
        evaluator.measure(path, 0, 4)
    wider = recipe.family.model_copy(update={"params": {**recipe.family.params, "hidden": 64}})
    model = Learner(recipe.model_copy(update={"family": wider}), 0)
    named = dict(zip(model._state_names(), model.state()[1], strict=True))
    checkpoint.write(path, named, 1, recipe.sha256())
    with pytest.raises(checkpoint.BadCheckpoint, match="cannot be read"):
        evaluator.measure(path, 0, 4)
    path.write_bytes(b"broken")
    with pytest.raises(checkpoint.BadCheckpoint, match="cannot be read"):
        evaluator.measure(path, 0, 4)


def test_a_device_measures_where_it_can_do_nothing_else_and_not_before(monkeypatch):
    params = {"hidden": 768, "layers": 12, "heads": 12, "embedding": 128, "length": 64}
    family = Choice(name="albert", params=params)
    recipe = make_recipe(held_out=HELD_OUT).model_copy(update={"family": family})
    trains, measures = (need_of(recipe, way=w).total for w in (Way.RECOMPUTED, Way.EVALUATING))
    assert measures < trains
    for free, must in ((trains + MIB, False), (trains - MIB, True), (measures - MIB, False)):
        monkeypatch.setattr(memory, "room_bytes", lambda free=free: free)
        assert evaluating.must_evaluate(recipe) is must
        without = recipe.model_copy(update={"held_out": None})
        assert not evaluating.must_evaluate(without)
    found = judge_machine(recipe, int((trains - MIB) / 0.75))
    assert found.fits and found.way is Way.EVALUATING
    assert found.words.endswith(
        "not to train, but to measure the model with a part of the held-out text"
    )


def test_only_what_every_device_can_read_is_measured_with():
    recipe = make_recipe(held_out=HELD_OUT)
    assert Way.EVALUATING in ways_of(recipe)
    there = Text(kind="local", path="/somewhere")
    for other in (
        recipe.model_copy(update={"held_out": None}),
        recipe.model_copy(update={"held_out": there}),
        recipe.model_copy(update={"texts": (Text(kind="private"),)}),
    ):
        assert Way.EVALUATING not in ways_of(other)
