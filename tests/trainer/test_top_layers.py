"""The top layers of a base: what trains, that all of it counts, and that nothing below is kept."""

from __future__ import annotations

import pytest
import torch
import transformers

from tests.trainer.averaging import end_round
from tests.trainer.models import make_batch, play_round
from tests.trainer.tiny_bases import MAKES, adapt, described, make_learner, top_layers
from trainer import bases, catalogue, stacks
from trainer.adapter_files import adapter_files
from trainer.commands import main
from trainer.engine import checkpoint
from trainer.parts import Stack
from trainer.planner.need import activation_bytes, need_of
from trainer.recipe import Choice

STACKED = [make for make in MAKES if make != "albert"]  # whose layers share their weights
every_make = pytest.mark.parametrize("make", STACKED)
every_strategy = pytest.mark.parametrize("strategy", sorted(catalogue.plugins("strategies")))


def recipe_of(folder, make="llama", layers=1, **changes):
    return adapt(folder, make, adapter=top_layers(layers), **changes)


def untrained(learner):
    own = set(learner.names)
    return {n: p.detach().clone() for n, p in learner.model.named_parameters() if n not in own}


@every_make
def test_the_last_layers_and_what_follows_train_and_the_rest_stays(base_of, make):
    folder = base_of(make)
    learner = make_learner(recipe_of(folder, make), folder)
    stack = described(folder).stack
    last = len(stack.layers) - 1
    for name in learner.names:
        assert stacks.layer_of(name, stack) == last or stacks.is_after(name, stack)
    trained = sum(param.numel() for param in learner.params)
    assert trained == stack.layers[-1] + stack.after_values
    assert trained == catalogue.trained_parameters(learner.recipe)
    before = untrained(learner)
    losses = [play_round(learner, make_batch(n), make_batch(100 + n)) for n in range(40)]
    assert sum(losses[-5:]) < 0.98 * sum(losses[:5])
    after = untrained(learner)
    assert before and all(torch.equal(before[name], after[name]) for name in before)
    assert all(p.grad is None for n, p in learner.model.named_parameters() if n in before)


@every_make
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_no_gradient_goes_below_the_layers_that_train(base_of, make, precision):
    """Held in 16 bits or in 32: what goes into the lowest layer that trains has no gradient."""
    folder = base_of(make)
    base = described(folder).model_copy(update={"precision": precision})
    learner = make_learner(recipe_of(folder, make, base=base), folder)
    frozen = {p.dtype for n, p in learner.model.named_parameters() if n not in learner.names}
    assert (torch.bfloat16 in frozen) == (precision == "bf16")
    assert {tensor.dtype for tensor in (*learner.params, *learner.state()[1])} == {torch.float32}
    seen = []
    *_, top = learner.family.layers(learner.model)
    top.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    assert learner.learn(make_batch()) is not None
    (hidden,) = seen
    assert hidden.dtype == torch.float32 and not hidden.requires_grad
    assert all(tensor.any() for tensor in learner.context.gradient)


@every_make
def test_every_averaged_key_is_applied_and_changes_what_the_model_says(base_of, make):
    folder = base_of(make)
    learner = make_learner(recipe_of(folder, make, strategy=Choice(name="fedavg")), folder)
    generator = torch.Generator().manual_seed(3)
    mean = [torch.randn(p.shape, generator=generator) * 0.1 for p in learner.params]
    expected = [anchor - change for anchor, change in zip(learner.anchor, mean, strict=True)]
    learner.learn(make_batch())
    learner.accept([tensor.clone() for tensor in mean], [])
    in_model = dict(learner.model.named_parameters())
    for name, value in zip(learner.names, expected, strict=True):
        torch.testing.assert_close(in_model[name].detach(), value)
        gradient = torch.zeros_like(value)
        in_model[name].grad = gradient
        learner.family.loss_sum(learner.model, make_batch()).backward()
        assert gradient.any() or name.endswith(("k_proj.bias", "key.bias")), name


@every_strategy
def test_every_strategy_averages_the_top_and_newcomers_and_files_are_in_step(
    base_of, tmp_path, strategy
):
    recipe = recipe_of(base_of(), strategy=Choice(name=strategy))
    peers = [make_learner(recipe, base_of()) for _ in range(2)]
    coordinator = make_learner(recipe, base_of())

    def play():
        for seed, peer in enumerate(peers):
            for number in range(3):
                peer.learn(make_batch(1000 * seed + 100 * peer.round + number))
            offered = sum(tensor.numel() for tensor in peer.offer().tensors)
            assert offered == catalogue.offered_values(recipe)
        end_round(peers, [coordinator])

    play()
    play()
    coordinator.save(path := tmp_path / checkpoint.filename(2))
    peers.append(make_learner(recipe, base_of()))
    peers[-1].load_state(2, peers[0].state()[1])
    coordinator = make_learner(recipe, base_of())
    coordinator.load(path)
    play()
    for learner in (*peers[1:], coordinator):
        assert learner.fingerprint() == pytest.approx(peers[0].fingerprint(), rel=1e-6, abs=1e-6)
        for mine, theirs in zip(learner.params, peers[0].params, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8)


@every_make
def test_an_export_is_the_base_with_what_trained_in_its_place(
    base_of, tmp_path, monkeypatch, capsys, make
):
    monkeypatch.setenv("POTLUCK_HOME", str(tmp_path / "home"))
    folder = base_of(make)
    learner = make_learner(recipe_of(folder, make), folder)
    for number in range(3):
        play_round(learner, make_batch(number))
    learner.save(path := tmp_path / checkpoint.filename(3))
    (tmp_path / "recipe.json").write_text(learner.recipe.model_dump_json())
    words = ["--recipe", str(tmp_path / "recipe.json"), "--base", str(folder)]
    assert main(["export", str(path), str(tmp_path / "out"), *words]) == 0
    assert "for PEFT" not in capsys.readouterr().out and not (tmp_path / "out/adapter").exists()
    kind = getattr(transformers, MAKES[make][1])
    model = kind.from_pretrained(tmp_path / "out").eval()
    loss, tokens = learner.evaluate([make_batch(9)])
    with torch.no_grad():
        theirs = float(learner.family.loss_sum(model, make_batch(9)))
        begun = float(learner.family.loss_sum(kind.from_pretrained(folder), make_batch(9)))
    assert theirs == pytest.approx(loss * tokens, rel=1e-5) != pytest.approx(begun, rel=1e-3)
    with pytest.raises(ValueError, match="PEFT knows no files for the top layers"):
        adapter_files(path, learner.recipe)


def test_the_planner_counts_the_top_once_and_what_is_below_as_frozen(base_of):
    folder = base_of()
    whole, top = adapt(folder, adapter=None), recipe_of(folder)
    parts = {part.name: part.bytes for part in need_of(top).parts}
    trained = catalogue.trained_parameters(top)
    assert parts["weights"] == parts["averaging buffer"] == 4 * trained
    assert parts["frozen base"] == 4 * (described(folder).parameters - trained)
    assert need_of(top).total < need_of(whole).total
    kept = {
        name: activation_bytes(catalogue.family_of(recipe), recipe, 4)
        for name, recipe in {"top": top, "whole": whole, "lora": adapt(folder)}.items()
    }
    assert kept["top"] < kept["whole"] == kept["lora"]


def test_a_pass_keeps_about_what_is_planned_of_the_top_alone(base_of):
    from tests.trainer.test_planner_need import values_kept

    folder = base_of()
    learner = make_learner(recipe_of(folder), folder)
    kept = values_kept(learner, make_batch())
    assert 0.75 * kept < learner.family.activation_values(64, 64, make_batch().tokens) < 1.4 * kept


@pytest.mark.parametrize(
    ("make", "changes", "complaint"),
    [
        ("albert", {}, "no layers of which the last ones can be told apart"),
        ("llama", {"layers": 3}, "layers is 3, and this base has 2"),
        ("llama", {"precision": "int8"}, "held in int8 cannot train"),
        ("llama", {"more": 1}, "describe it anew"),
    ],
)
def test_a_top_that_a_base_does_not_have_is_refused_in_words(base_of, make, changes, complaint):
    base = described(base_of(make))
    if "more" in changes:
        stack = base.stack.model_copy(update={"after_values": base.stack.after_values + 1})
        base = base.model_copy(update={"stack": stack})
    base = base.model_copy(update={"precision": changes.get("precision", "fp32")})
    recipe = recipe_of(base_of(make), make, changes.get("layers", 1), base=base)
    with pytest.raises(ValueError, match=complaint):
        catalogue.check(recipe)
        make_learner(recipe, base_of(make))


def test_layers_are_told_by_names_whatever_comes_before_them():
    """As in GPT-2's own file: no prefix, masks among the weights, and scores by the words."""
    shapes = [
        ("wte.weight", [64, 8]),
        ("wpe.weight", [16, 8]),
        *((f"h.{n}.attn.bias", [1, 1, 16, 16]) for n in range(2)),
        *((f"h.{n}.mlp.c_fc.weight", [8, 32]) for n in range(2)),
        ("ln_f.weight", [8]),
        ("lm_head.weight", [64, 8]),
    ]
    config = {"n_layer": 2, "vocab_size": 64}
    tied = stacks.stack_of(shapes, config | {"tie_word_embeddings": True})
    assert tied == Stack(place="h", layers=(256, 256), after=("ln_f.weight",), after_values=8)
    own = stacks.stack_of(shapes, config)
    assert own.after == ("lm_head.weight", "ln_f.weight")
    assert stacks.layer_of("transformer.h.1.mlp.c_fc.weight", own) == 1
    assert stacks.is_after("transformer.ln_f.weight", own)
    assert not stacks.is_after("transformer.h.1.ln_f.weight", own)
    assert stacks.stack_of(shapes, config | {"n_layer": 3}) is None


def test_a_recipe_whose_base_has_no_stack_has_the_hash_that_it_had(base_of):
    recipe = adapt(base_of("albert"), "albert")
    assert recipe.base.stack is None and '"stack"' not in recipe.canonical()
    assert '"stack"' in adapt(base_of()).canonical()
    described_before = recipe.base.model_dump(mode="json")
    del described_before["stack"]
    assert bases.Base.model_validate(described_before) == recipe.base
