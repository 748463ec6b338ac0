"""LoRA beside the matrices of any base: what trains, how it begins, and that all of it counts."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import load_file

from tests.trainer.averaging import end_round
from tests.trainer.models import make_batch, make_recipe, play_round
from tests.trainer.tiny_bases import MAKES, adapt, described, lora, make_learner
from trainer import catalogue
from trainer.engine import checkpoint
from trainer.recipe import Choice, Recipe

BUFFERS = {"bart": 64}  # values in its file that are no parameters
every_make = pytest.mark.parametrize("make", list(MAKES))
every_strategy = pytest.mark.parametrize("strategy", sorted(catalogue.plugins("strategies")))


def numbers(learner):
    return sum(param.numel() for param in learner.params)


def frozen(learner):
    return {n: p.detach().clone() for n, p in learner.model.named_parameters() if ".lora_" not in n}


def spread(learner):
    """B is 0 in the beginning, and so A has no effect yet."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for param in learner.params:
            param.add_(torch.randn(param.shape, generator=generator) * 0.1)


@every_make
def test_the_description_counts_the_bases_parameters_and_what_an_adapter_adds(base_of, make):
    base = described(base_of(make))
    learner = make_learner(adapt(base_of(make), make), base_of(make))
    values = sum(tensor.numel() for tensor in frozen(learner).values())
    assert base.parameters == values + BUFFERS.get(make, 0)
    assert numbers(learner) == catalogue.trained_parameters(learner.recipe)
    assert {param.dtype for param in learner.params} == {torch.float32}
    assert all(".lora_A." in name or ".lora_B." in name for name in learner.names)


@every_make
def test_it_begins_as_the_base_and_learns_while_the_base_stays(base_of, make):
    folder = base_of(make)
    learner = make_learner(adapt(folder, make), folder)
    whole = make_learner(adapt(folder, make, adapter=None), folder)
    assert numbers(whole) == described(folder).parameters - BUFFERS.get(make, 0)
    batch = make_batch()
    assert learner.evaluate([batch]) == whole.evaluate([batch])
    before = frozen(learner)
    losses = [play_round(learner, make_batch(n), make_batch(100 + n)) for n in range(40)]
    assert sum(losses[-5:]) < 0.95 * sum(losses[:5])
    after = frozen(learner)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(param.grad is None for n, param in learner.model.named_parameters() if n in before)


def test_a_layer_computes_w_x_and_alpha_by_r_times_b_a_x(base_of):
    recipe = adapt(base_of(), adapter=lora(rank=2, alpha=6.0, targets="q_proj, v_proj"))
    learner = make_learner(recipe, base_of())
    assert len(learner.params) == 2 * 2 * 2
    spread(learner)
    path = "model.layers.1.self_attn.q_proj"
    weight = load_file(base_of() / "model.safetensors")[f"{path}.weight"]
    a, b = (
        dict(learner.model.named_parameters())[f"{path}.lora_{part}.default.weight"]
        for part in "AB"
    )
    x = torch.randn(3, 32, generator=torch.Generator().manual_seed(2))
    expected = x @ weight.T + 6.0 / 2 * (x @ a.T) @ b.T
    torch.testing.assert_close(learner.model.get_submodule(path)(x), expected)


def test_a_is_gaussian_by_the_seed_alone_and_b_is_zero(base_of):
    recipe = adapt(base_of(), adapter=lora(rank=32, targets="gate_proj,up_proj"))
    torch.manual_seed(1)
    one = make_learner(recipe, base_of())
    torch.rand(100)
    same = make_learner(recipe, base_of())
    other = make_learner(recipe.model_copy(update={"seed": 1}), base_of())
    values = []
    for name, mine, theirs, others in zip(
        one.names, one.params, same.params, other.params, strict=True
    ):
        assert torch.equal(mine, theirs)
        if ".lora_B." in name:
            assert not mine.any()
        else:
            assert not torch.equal(mine, others)
            values.append(mine.detach().flatten() * mine.shape[1] ** 0.5)
    assert len({float(tensor[0]) for tensor in values}) == len(values) == 4
    drawn = torch.cat(values)
    assert abs(drawn.mean()) < 0.1 and abs(drawn.std() - 1) < 0.1
    within = (drawn.abs() < 1).float().mean()
    assert abs(within - 0.6827) < 0.04  # 0.577 were it uniform, as PEFT has it
    assert drawn.abs().max() > 1.8  # more than 3 ** 0.5, where uniform values would end


@every_make
def test_every_averaged_key_is_applied_and_changes_what_the_model_says(base_of, make):
    """Others average keys that no module reads: each one here is in the model, and counts."""
    folder = base_of(make)
    learner = make_learner(adapt(folder, make, strategy=Choice(name="fedavg")), folder)
    generator = torch.Generator().manual_seed(3)
    mean = [torch.randn(p.shape, generator=generator) * 0.1 for p in learner.params]
    expected = [anchor - change for anchor, change in zip(learner.anchor, mean, strict=True)]
    learner.learn(make_batch())
    learner.accept([*(tensor.clone() for tensor in mean), torch.zeros(64)], [])
    in_model = dict(learner.model.named_parameters())
    loss = learner.evaluate([make_batch()])
    for name, value in zip(learner.names, expected, strict=True):
        torch.testing.assert_close(in_model[name].detach(), value)
        with torch.no_grad():
            in_model[name].mul_(3.0)
            assert learner.evaluate([make_batch()]) != loss, name
            in_model[name].copy_(value)


@every_strategy
def test_every_strategy_trains_adapters_as_it_trains_models(base_of, tmp_path, strategy):
    """Peers agree, a newcomer and a restarted coordinator are in step, and only adapters travel."""
    recipe = adapt(base_of(), strategy=Choice(name=strategy))
    peers = [make_learner(recipe, base_of()) for _ in range(2)]
    coordinator = make_learner(recipe, base_of())
    before = frozen(peers[0])

    def play():
        for seed, peer in enumerate(peers):
            for number in range(3):
                peer.learn(make_batch(1000 * seed + 100 * peer.round + number))
            offer = peer.offer()
            assert sum(t.numel() for t in offer.tensors) == catalogue.offered_values(recipe)
            assert catalogue.offered_values(recipe) < peer.strategy.vectors * numbers(peer) + 100
        end_round(peers, [coordinator])

    for _ in range(3):
        play()
    path = tmp_path / checkpoint.filename(3)
    coordinator.save(path)
    stored = load_file(path)
    assert all(".lora_" in name for name in stored)
    newcomer = make_learner(recipe, base_of())
    newcomer.load_state(3, peers[0].state()[1])
    peers.append(newcomer)
    coordinator = make_learner(recipe, base_of())
    coordinator.load(path)
    for _ in range(2):
        play()
    for learner in (*peers[1:], coordinator):
        assert learner.round == 5
        assert learner.fingerprint() == pytest.approx(peers[0].fingerprint(), rel=1e-6, abs=1e-6)
        for mine, theirs in zip(learner.params, peers[0].params, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8)
    trained = dict(zip(newcomer.names, newcomer.params, strict=True))
    assert all(param.any() for name, param in trained.items() if ".lora_B." in name)
    after = frozen(newcomer)
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("make", ["llama", "bert", "t5"])
def test_layers_that_are_computed_again_give_adapters_the_same_gradient(base_of, make):
    """Though nothing that goes into the first of them has one, as the words do not train."""
    plain, thrifty = (make_learner(adapt(base_of(make), make), base_of(make)) for _ in range(2))
    thrifty.recompute()
    for learner in (plain, thrifty):
        spread(learner)
        assert learner.learn(make_batch()) is not None
    for mine, theirs in zip(plain.params, thrifty.params, strict=True):
        assert mine.grad.any()
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_a_base_in_16_bits_has_adapters_in_32(base_of):
    base = described(base_of()).model_copy(update={"precision": "bf16"})
    learner = make_learner(adapt(base_of(), base=base), base_of())
    assert {tensor.dtype for tensor in frozen(learner).values()} == {torch.bfloat16}
    losses = [play_round(learner, make_batch(n), make_batch(100 + n)) for n in range(20)]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
    assert {tensor.dtype for tensor in learner.state()[1]} == {torch.float32}


@pytest.mark.parametrize("precision", ["int8", "nf4"])
def test_a_base_in_8_or_4_bits_trains_where_the_device_has_the_library(base_of, precision):
    base = described(base_of()).model_copy(update={"precision": precision})
    recipe = adapt(base_of(), base=base)
    if find_spec("bitsandbytes") is None:
        with pytest.raises(ValueError, match="this device lacks the library bitsandbytes"):
            make_learner(recipe, base_of())
        return
    learner = make_learner(recipe, base_of())
    assert numbers(learner) == catalogue.trained_parameters(recipe)
    losses = [play_round(learner, make_batch(n), make_batch(100 + n)) for n in range(20)]
    assert sum(losses[-5:]) < 0.95 * sum(losses[:5])
    assert {tensor.dtype for tensor in learner.state()[1]} == {torch.float32}


def test_the_recipes_hash_covers_base_and_adapter_and_no_others_has_changed(base_of):
    recipe = adapt(base_of())
    other_base = recipe.base.model_copy(update={"files": recipe.base.files[:1] * 2})
    hashes = {
        changed.sha256()
        for changed in (
            recipe,
            recipe.model_copy(update={"base": other_base}),
            recipe.model_copy(update={"adapter": lora(rank=5)}),
            recipe.model_copy(update={"adapter": None}),
        )
    }
    assert len(hashes) == 4
    again = Recipe.model_validate_json(recipe.model_dump_json())
    assert again == recipe and again.sha256() == recipe.sha256()
    assert "base" not in make_recipe().canonical()


def test_who_trains_without_an_adapter_never_loads_peft():
    check = (
        "import sys, trainer.engine.peer, trainer.agent.main;"
        "from tests.trainer.models import make_recipe;"
        "from trainer.engine.learner import Learner;"
        "Learner(make_recipe(), 0);"
        "print([m for m in ('peft', 'bitsandbytes') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
