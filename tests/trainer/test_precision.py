"""Passes in 16 bits learn the same, and what these cannot hold costs one micro-batch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.trainer.models import (
    SHAPES,
    gradient_of,
    make_batch,
    make_recipe,
    off,
    play_round,
)
from tests.trainer.rehearsals import make_plan
from trainer import catalogue
from trainer.device import doctor
from trainer.device.precision import WORDS
from trainer.engine import arithmetic
from trainer.engine.arithmetic import Arithmetic, Dropped, chosen
from trainer.engine.learner import Learner
from trainer.recipe import Choice
from trainer.simulator.run import Rehearsal

ROOT = Path(__file__).resolve().parents[2]
CLOSE = {"bf16": 0.05, "fp16": 0.02}  # relative, of a gradient's length
TOO_LARGE = 2.0**120


@pytest.mark.parametrize("kind", list(CLOSE))
@pytest.mark.parametrize("family", list(SHAPES))
def test_matrices_are_multiplied_in_16_bits_and_all_that_is_kept_has_32(family, kind):
    seen = set()
    whole, learner = (Learner(make_recipe(family), 0, computes=one) for one in ("fp32", kind))
    for part in learner.model.modules():
        if isinstance(part, torch.nn.Linear):
            part.register_forward_hook(lambda part, given, made: seen.add(made.dtype))
    losses = [one.learn(make_batch(3)) for one in (whole, learner)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-2)
    assert off(gradient_of(learner), gradient_of(whole)) < CLOSE[kind]
    play_round(learner, make_batch(4))
    assert seen == {arithmetic.DTYPES[kind]}
    kept = [*learner.params, *learner.anchor, *learner.state()[1], *learner.context.gradient]
    kept += learner.offer().tensors
    assert {tensor.dtype for tensor in kept} == {torch.float32}


@pytest.mark.parametrize("strategy", sorted(catalogue.plugins("strategies")))
@pytest.mark.parametrize("kind", list(CLOSE))
def test_every_strategy_takes_its_steps_in_16_bits(strategy, kind):
    recipe, offers = make_recipe(strategy=Choice(name=strategy)), []
    for one in ("fp32", kind):
        learner = Learner(recipe, 0, computes=one)
        for number in range(4):
            learner.learn(make_batch(number))
        tensors = learner.offer().tensors
        assert {tensor.dtype for tensor in tensors} == {torch.float32}
        offers.append(torch.cat([tensor.flatten() for tensor in tensors]))
    assert off(offers[1], offers[0]) < 0.2  # Adam's steps are long where gradients are tiny


def test_gradients_that_fp16_cannot_hold_are_there_all_the_same():
    """Of a millionth of the loss: without a scale most of them would be nothing."""
    learner = Learner(make_recipe(), 0, computes="fp16")
    loss_sum, wanted = learner.family.loss_sum, Learner(make_recipe(), 0)
    wanted.learn(make_batch())
    learner.family.loss_sum = lambda model, batch: 1e-6 * loss_sum(model, batch)
    learner.learn(make_batch())
    assert off(1e6 * gradient_of(learner), gradient_of(wanted)) < CLOSE["fp16"]
    learner.begin()
    learner.arithmetic.scale = 1.0
    learner.learn(make_batch())
    assert off(1e6 * gradient_of(learner), gradient_of(wanted)) > 0.1


def test_a_micro_batch_that_is_too_large_leaves_no_trace_and_halves_the_scale():
    learner, other = (Learner(make_recipe(), 0, computes="fp16") for _ in range(2))
    for one in (learner, other):
        one.learn(make_batch(1))
    before = gradient_of(learner).clone()
    learner.arithmetic.scale = TOO_LARGE
    with pytest.raises(Dropped, match=re.escape(f"by {TOO_LARGE / 2:g} from now on")):
        learner.learn(make_batch(2), rows=2)
    assert torch.equal(gradient_of(learner), before)
    told = learner.context
    assert (told.samples, told.tokens, told.steps) == (4, make_batch(1).tokens, 1)
    dropped = 1
    while learner.context.steps == 1:
        try:
            learner.learn(make_batch(2), rows=2)
        except Dropped:
            dropped += 1
    other.learn(make_batch(2), rows=2)
    assert learner.arithmetic.scale == TOO_LARGE / 2**dropped > other.arithmetic.scale
    assert off(gradient_of(learner), gradient_of(other)) < 1e-2
    assert learner.offer().weight == other.offer().weight


def test_peers_with_unlike_scales_and_unlike_precisions_offer_the_same():
    offers = []
    for kind, scale in (("fp32", 1.0), ("fp16", 2.0**8), ("fp16", 2.0**14), ("bf16", 1.0)):
        learner = Learner(make_recipe(), 0, computes=kind)
        learner.arithmetic.scale = scale
        learner.learn(make_batch(5))
        offers.append(torch.cat([tensor.flatten() for tensor in learner.offer().tensors]))
    assert all(off(offer, offers[0]) < 0.05 for offer in offers[1:])


def test_the_scale_grows_again_after_many_that_were_not_too_large(monkeypatch):
    monkeypatch.setattr(arithmetic, "GROW_AFTER", 3)
    learner = Learner(make_recipe(), 0, computes="fp16")
    scales = []
    for number in range(7):
        learner.learn(make_batch(number))
        scales.append(learner.arithmetic.scale)
    first = arithmetic.FIRST_SCALE
    assert scales == [first, first, 2 * first, 2 * first, 2 * first, 4 * first, 4 * first]


def test_a_model_that_fp16_does_not_hold_is_computed_in_fp32():
    learner = Learner(make_recipe(), 0, computes="fp16")
    loss_sum = learner.family.loss_sum
    halves = []

    def too_large(model, batch):
        """As values above 65,504 are, whatever the loss is scaled by."""
        halves.append(torch.is_autocast_enabled("cpu"))
        return loss_sum(model, batch) * (float("inf") if halves[-1] else 1.0)

    learner.family.loss_sum = too_large
    for _ in range(17):  # from 2**16 down to 1, and once at that
        with pytest.raises(Dropped):
            learner.learn(make_batch())
    assert learner.arithmetic.kind == "fp32" and learner.thrift == ""
    assert learner.learn(make_batch()) > 0 and halves == [True] * 17 + [False]


def test_a_dropped_micro_batch_counts_nowhere_in_a_swarm(monkeypatch, tmp_path):
    monkeypatch.setattr(arithmetic, "native", lambda: "fp16")
    monkeypatch.setattr(arithmetic, "FIRST_SCALE", 2.0**26)
    dropped = []
    gather = Arithmetic.gather

    def watched(self, *words):
        try:
            return gather(self, *words)
        except Dropped:
            dropped.append(self.scale)
            raise

    monkeypatch.setattr(Arithmetic, "gather", watched)
    plan = make_plan(tmp_path, peers=3, rounds=4)
    recipe = plan.recipe.model_copy(update={"precision": "mixed"})
    report = Rehearsal(plan.__class__(**{**vars(plan), "recipe": recipe})).run()
    assert dropped and report["reached"] and report["refused"] == {}
    assert report["last_loss"] < report["first_loss"]
    samples = report["samples"]
    assert samples["in_the_model"] == samples["receipts"] and samples["released"] == 0


GROUP = """
import json, sys
from pathlib import Path
import torch
from tests.trainer.models import make_batch, make_recipe
from trainer.engine import arithmetic
from trainer.engine.group_learner import GroupLearner
from trainer.engine.learner import Learner
from trainer.strategies.base import norm_of
torch.set_num_threads(1)
arithmetic.FIRST_SCALE = 2.0**28
folder, told = Path(sys.argv[1]), []
for split in ("", "optimizer", "parameters"):
    recipe = make_recipe()
    if split:
        (folder / split).mkdir()
        learner = GroupLearner(recipe, 0, 2, folder / split, split, computes="fp16")
    else:
        learner = Learner(recipe, 0, computes="fp16")
    dropped, loss = 0, None
    while loss is None:
        try:
            loss = learner.learn(make_batch(1), rows=2)
        except arithmetic.Dropped:
            dropped += 1
    loss += learner.learn(make_batch(2), rows=2)
    offer = learner.offer()
    told.append([dropped, loss, norm_of(offer.tensors), offer.weight])
    learner.close()
print(json.dumps(told))
"""


def test_the_processes_of_a_group_drop_the_same_micro_batch(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", GROUP, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    alone, *groups = json.loads(done.stdout)
    for group in groups:
        assert group[0] > 4 and abs(group[0] - alone[0]) < 3
        assert group[1:] == pytest.approx(alone[1:], rel=2e-3)


@pytest.mark.parametrize(("has_bf16", "kind"), [(True, "bf16"), (False, "fp16")])
def test_a_gpu_takes_bf16_only_where_it_has_that_itself(monkeypatch, has_bf16, kind):
    """With emulation a T4 says yes, and is slow."""

    def supported(including_emulation: bool = True) -> bool:
        return has_bf16 or including_emulation

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    assert chosen(make_recipe(precision="mixed")) == kind
    assert chosen(make_recipe()) == "fp32"


@pytest.mark.parametrize(
    ("feature", "kind"), [("amx_bf16", "bf16"), ("avx512_bf16", "bf16"), ("avx2", "fp32")]
)
def test_a_processor_takes_bf16_only_where_it_has_instructions_for_it(monkeypatch, feature, kind):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {feature: True})
    assert chosen(make_recipe(precision="mixed")) == kind
    assert chosen(make_recipe()) == "fp32"
    assert WORDS[kind] in doctor.check_precision().words
