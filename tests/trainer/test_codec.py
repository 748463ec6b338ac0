"""What travels: nothing is clipped, and what was received says itself how to read it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hivemind.proto import runtime_pb2

from trainer.swarm.codec import BLOCK, FORMS, Codec, Unusable

ERRORS = {"fp32": 0.0, "fp16": 3e-4, "int8": 1e-2}
CODECS = sorted(FORMS)


def gradient(count: int = 10_000) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(1)) * 1e-3


def error(codec: Codec, values: torch.Tensor) -> float:
    received = codec.as_received(values).double()
    return float((received - values.double()).norm() / values.double().norm())


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6, 1e30])
def test_d06_the_scale_of_the_values_does_not_matter(name: str, scale: float):
    assert error(Codec(name), gradient() * scale) <= ERRORS[name]


@pytest.mark.parametrize("name", CODECS)
def test_d06_values_far_outside_half_precision_are_not_clipped(name: str):
    values = torch.tensor([1e6, -3e38, 1e-9, 0.0])
    for part in (values[:1], values[1:2], values[2:3], values[3:]):
        torch.testing.assert_close(Codec(name).as_received(part), part, rtol=1e-3, atol=0)
    assert float(Codec(name).as_received(values[[0, 2]])[0]) == pytest.approx(1e6, rel=1e-3)


def test_a_part_whose_outliers_would_crush_the_rest_is_sent_wider():
    values = gradient()
    values[::BLOCK] = 1e3
    message = Codec("int8").compress(values)
    assert message.dtype == "fp16"
    rest = torch.ones(len(values), dtype=torch.bool)
    rest[::BLOCK] = False
    received = Codec("int8").extract(message)
    assert float((received - values)[rest].norm() / values[rest].norm()) < 1e-3
    assert Codec("int8").compress(gradient()).dtype == "int8"


@pytest.mark.parametrize(("name", "most"), [("fp32", 4.0), ("fp16", 2.01), ("int8", 1.05)])
def test_bytes_for_each_value(name: str, most: float):
    assert len(Codec(name).compress(gradient()).buffer) / 10_000 <= most


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (BLOCK + 1,), ()])
def test_every_shape_comes_back(name: str, shape: tuple[int, ...]):
    values = torch.full(shape, 2.5)
    torch.testing.assert_close(Codec(name).as_received(values), values, rtol=1e-2, atol=0)


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_neither_sent_nor_taken(name: str, bad: float):
    with pytest.raises(Unusable, match="not finite"):
        Codec(name).compress(torch.tensor([1.0, bad]))
    raw = np.array([1.0, bad], "<f4").tobytes()
    if name == "fp32":
        with pytest.raises(Unusable, match="not finite"):
            Codec(name).extract(runtime_pb2.Tensor(buffer=raw, size=[2], dtype="fp32"))


@pytest.mark.parametrize(
    ("form", "length", "size", "complaint"),
    [
        ("float32", 8, [2], "encoded in another way"),
        ("fp32", 8, [2], "encoded in another way"),
        ("fp16", 6, [2**31 - 1], "does not match"),
        ("fp16", 5, [2], "does not match"),
        ("fp16", 0, [0], "does not match"),
    ],
)
def test_a_part_of_another_kind_is_refused_before_it_is_read(form, length, size, complaint):
    message = runtime_pb2.Tensor(buffer=b"\0" * length, size=size, dtype=form)
    with pytest.raises(Unusable, match=complaint):
        Codec("fp16").extract(message)
