"""Models, the learning rate, the unit of weight, and states that move between peers."""

from __future__ import annotations

import pytest
import torch

from tests.trainer.models import SHAPES, VOCABULARY, make_batch, make_recipe, play_round
from trainer import catalogue
from trainer.engine.learner import Learner
from trainer.engine.schedule import learning_rate
from trainer.families import albert
from trainer.recipe import Choice, Optimizer
from trainer.swarm.download import BadState, check_state

FAMILIES = sorted(SHAPES)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_closed_form_counts_the_models_real_parameters(name: str):
    family = catalogue.create("families", Choice(name=name, params=SHAPES[name]))
    model = family.build(VOCABULARY, 16, 0)
    real = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert family.parameter_count(VOCABULARY) == real


def test_albert_large_has_the_known_number_of_parameters():
    params = albert.Params(hidden=1024, layers=24, heads=16, embedding=128, length=512)
    assert albert.Albert(params).parameter_count(32_000) == 17_053_824


def test_llama_7b_and_llama_3_8b_have_the_known_numbers_of_parameters():
    seven = {"hidden": 4096, "layers": 32, "heads": 32, "tied": False}
    eight = {**seven, "key_heads": 8, "inner": 14_336}
    for sizes, words, known in ((seven, 32_000, 6_738_415_616), (eight, 128_256, 8_030_261_248)):
        family = catalogue.create("families", Choice(name="llama", params=sizes))
        assert family.parameter_count(words) == known
        assert family.used_parameters(words) == known - words * 4096


@pytest.mark.parametrize("sizes", [{"tied": False}, {"key_heads": 1}, {"key_heads": 0, "inner": 0}])
def test_every_form_of_llama_has_as_many_parameters_as_are_counted(sizes):
    params = SHAPES["llama"] | sizes
    family = catalogue.create("families", Choice(name="llama", params=params))
    model = family.build(VOCABULARY, 16, 0)
    assert sum(p.numel() for p in model.parameters()) == family.parameter_count(VOCABULARY)


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [({"heads": 4, "key_heads": 3}, "multiple of key_heads"), ({"hidden": 36}, "must be even")],
)
def test_heads_that_cannot_share_or_turn_are_refused(sizes, complaint):
    with pytest.raises(ValueError, match=complaint):
        catalogue.create("families", Choice(name="llama", params=sizes))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_sequence_that_does_not_fit_the_model_is_refused(name: str):
    family = catalogue.create("families", Choice(name=name, params=SHAPES[name]))
    with pytest.raises(ValueError, match="lower sequence_length"):
        family.build(VOCABULARY, 64, 0)


def test_a_width_that_the_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="multiple of heads"):
        albert.Params(hidden=30, heads=4)


@pytest.mark.parametrize("name", FAMILIES)
def test_a07_a_peer_alone_changes_its_model_every_round_and_learns(name: str):
    learner = Learner(make_recipe(name), pad_id=0)
    losses = []
    for number in range(30):
        before = [p.detach().clone() for p in learner.params]
        losses.append(play_round(learner, make_batch(number), make_batch(100 + number)))
        assert any(not torch.equal(a, b) for a, b in zip(before, learner.params, strict=True))
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    assert learner.round == 30


def test_c15_the_unit_of_weight_is_the_target_token():
    assert pytest.approx(2.818, abs=1e-3) == (10 * 1.0 + 100 * 3.0) / 110
    uneven = make_batch(1, rows=1, chosen=0.05), make_batch(2, rows=8, chosen=0.6)
    assert uneven[0].tokens < uneven[1].tokens / 10

    one = Learner(make_recipe(), pad_id=0)
    sums = [one.learn(batch) for batch in uneven]
    together = one.offer()
    assert together is not None and together.weight == sum(b.tokens for b in uneven)

    offers = []
    for batch in uneven:
        peer = Learner(make_recipe(), pad_id=0)
        peer.learn(batch)
        offers.append(peer.offer())
    weight = sum(offer.weight for offer in offers)
    for position, tensor in enumerate(together.tensors):
        mean = sum(offer.weight * offer.tensors[position] for offer in offers) / weight
        torch.testing.assert_close(mean, tensor, rtol=1e-4, atol=1e-6)
    assert sum(s for s in sums if s) / together.weight == pytest.approx(
        sum(s / b.tokens * b.tokens for s, b in zip(sums, uneven, strict=True)) / weight
    )


@pytest.mark.parametrize(
    ("schedule", "at_end", "halfway"),
    [("constant", 1.0, 1.0), ("linear", 0.0, 0.5), ("cosine", 0.0, 0.5)],
)
def test_the_learning_rate_depends_on_the_round_alone(schedule, at_end, halfway):
    options = Optimizer(learning_rate=1.0, schedule=schedule, warmup_rounds=4, total_rounds=104)
    assert [learning_rate(options, r) for r in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert learning_rate(options, 54) == pytest.approx(halfway)
    assert learning_rate(options, 104) == pytest.approx(at_end)
    assert learning_rate(options, 5000) == pytest.approx(at_end)


def test_c12_after_a_resume_the_learning_rate_goes_on_where_it_was():
    options = Optimizer(learning_rate=1.0, schedule="linear", warmup_rounds=10, total_rounds=100)
    recipe = make_recipe(optimizer=options)
    veteran, resumed = Learner(recipe, pad_id=0), Learner(recipe, pad_id=0)
    veteran.round = 50
    resumed.load_state(50, veteran.state()[1])
    assert resumed.context.learning_rate == veteran.begin().learning_rate
    assert resumed.context.learning_rate == pytest.approx(0.5556, abs=1e-4)
    assert learning_rate(options, 120) == 0
    longer = make_recipe(optimizer=options.model_copy(update={"total_rounds": 200}))
    assert longer.swarm_id() != recipe.swarm_id()  # another schedule is another swarm


def test_a_fingerprint_tells_other_parameters_and_equal_ones():
    one, same, other = (Learner(make_recipe(), pad_id=0) for _ in range(3))
    play_round(other, make_batch(1))
    assert one.fingerprint() == same.fingerprint()
    assert one.fingerprint() != other.fingerprint()


def test_a_loss_that_is_not_finite_leaves_no_trace():
    learner = Learner(make_recipe(), pad_id=0)
    with torch.no_grad():
        learner.params[0].fill_(float("nan"))
    assert learner.learn(make_batch()) is None
    assert learner.context.tokens == 0
    learner.begin()
    assert torch.isfinite(torch.tensor(learner.learn(make_batch())))


def test_a_gradient_that_is_not_finite_is_not_offered():
    learner = Learner(make_recipe(), pad_id=0)
    learner.learn(make_batch())
    learner.params[0].grad.fill_(float("inf"))
    assert learner.offer() is None


def test_an_empty_offer_has_the_shapes_of_every_other():
    learner = Learner(make_recipe(), pad_id=0)
    empty = learner.offer()
    assert empty is not None and empty.weight == 0
    assert [t.shape for t in empty.tensors] == [p.shape for p in learner.params]
    assert all(not t.any() for t in empty.tensors)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda m, t: ({"round": 1}, t), "wanted is 2"),
        (lambda m, t: ({}, t), "round None"),
        (lambda m, t: (m, t[:-1]), "instead of"),
        (lambda m, t: (m, [t[0][:1], *t[1:]]), "shape"),
        (lambda m, t: (m, [t[0] * float("nan"), *t[1:]]), "not finite"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(change, complaint):
    learner = Learner(make_recipe(), pad_id=0)
    metadata, tensors = learner.state()
    shapes = [tensor.shape for tensor in tensors]
    metadata = {"round": 2}
    assert check_state(metadata, tensors, shapes, 2)[0] == 2
    with pytest.raises(BadState, match=complaint):
        check_state(*change(metadata, tensors), shapes, 2)
