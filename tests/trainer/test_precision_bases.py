"""Passes in 16 bits over bases, and what a device chooses for these."""

from __future__ import annotations

import pytest
import torch

from tests.trainer.models import gradient_of, make_batch, off
from tests.trainer.tiny_bases import adapt, described, top_layers
from trainer.engine import arithmetic, streaming
from trainer.engine.arithmetic import chosen
from trainer.engine.learner import Learner


@pytest.mark.parametrize(("held", "kind"), [("fp32", "bf16"), ("fp32", "fp16"), ("bf16", "bf16")])
@pytest.mark.parametrize("adapter", ["lora", "top_layers"])
@pytest.mark.parametrize("make", ["llama", "bert", "t5"])
def test_adapters_of_bases_in_either_precision_learn_in_16_bits(base_of, held, kind, adapter, make):
    base = described(base_of(make)).model_copy(update={"precision": held})
    more = {"adapter": top_layers(1)} if adapter == "top_layers" else {}
    recipe = adapt(base_of(make), make, **more).model_copy(update={"base": base})
    whole, learner = (Learner(recipe, 0, base_of(make), computes=one) for one in ("fp32", kind))
    for one in (whole, learner):
        one.learn(make_batch(3))
    assert off(gradient_of(learner), gradient_of(whole)) < (0.15 if held == "fp32" else 0.2)
    assert {tensor.dtype for tensor in learner.offer().tensors} == {torch.float32}


@pytest.mark.parametrize(
    ("held", "native", "kind"),
    [
        ("fp32", "fp16", "fp16"),
        ("bf16", "bf16", "bf16"),
        ("bf16", "fp16", "fp32"),
        ("nf4", "bf16", "fp32"),
    ],
)
def test_over_a_base_that_is_held_otherwise_a_device_computes_in_32_bits(
    base_of, monkeypatch, held, native, kind
):
    monkeypatch.setattr(arithmetic, "native", lambda: native)
    base = described(base_of()).model_copy(update={"precision": held})
    assert chosen(adapt(base_of(), precision="mixed", base=base)) == kind


@pytest.mark.parametrize("kind", ["bf16", "fp16"])
def test_what_is_computed_again_or_read_from_disk_gives_the_same_gradient(base_of, kind):
    recipe = adapt(base_of())
    plain, again, read = (
        Learner(recipe, 0, base_of(), streams=streams, computes=kind)
        for streams in (False, False, True)
    )
    again.recompute()
    for one in (plain, again, read):
        one.learn(make_batch(3))
    assert off(gradient_of(again), gradient_of(plain)) < 1e-3
    assert off(gradient_of(read), gradient_of(plain)) < 1e-3
    assert read.thrift.startswith(streaming.IN_WORDS) and kind in read.thrift
