"""How parts of offers and averages travel. No codec clips: what does not fit is sent wider.

Guards against hivemind 1.1.12, whose fp16 clamps to ±65504 and whose 8 bits to 6 sigmas, both
without a word, and which reads whatever kind of tensor a sender chooses. States always travel as
fp32 (Adam's second moment is 0 in fp16); they do not come through here.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import numpy as np
import torch
from hivemind.compression import CompressionBase
from hivemind.proto import runtime_pb2

from trainer.recipe import CODEC_BYTES

BLOCK = 128  # values that share one 8-bit scale
MOST_CRUSHED = 0.1  # share of a part's values that 8 bits may turn into 0
LEAST_EXPONENT = -110
FORMS = {"fp32": ("fp32",), "fp16": ("fp16",), "int8": ("int8", "fp16")}


class Fault(StrEnum):
    """What can be wrong with a part, as a predicate of its offer."""

    NOT_FINITE = "was not finite"
    SHAPE = "had another shape"
    LENGTH = "had a part whose length does not match its shape"
    CODEC = "was encoded in another way than the recipe says"
    NORM = "was longer than its declared norm"


class Unusable(ValueError):
    """A part that must not enter an average."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


class Codec(CompressionBase):
    """`fp32`; `fp16` with one power of 2 for each part; `int8` with one scale for each block.

    A part whose outliers would crush its other values in 8 bits is sent as fp16 instead, so what
    was sent says itself how to read it.
    """

    compression_type = runtime_pb2.NONE

    def __init__(self, name: str) -> None:
        self.name = name

    def estimate_compression_ratio(self, info: Any) -> float:
        return CODEC_BYTES[self.name] / 4

    def compress(
        self, tensor: torch.Tensor, info: Any = None, allow_inplace: bool = False
    ) -> runtime_pb2.Tensor:
        """Raises Unusable when a value is not finite."""
        flat = tensor.detach().reshape(-1).float()
        if not bool(torch.isfinite(flat).all()):
            raise Unusable(Fault.NOT_FINITE)
        form, content = self.name, None
        if form == "int8":
            content = _to_int8(flat)
            form = "int8" if content is not None else "fp16"
        if content is None:
            content = _to_fp16(flat) if form == "fp16" else flat.numpy().astype("<f4").tobytes()
        return runtime_pb2.Tensor(buffer=content, size=tensor.shape, dtype=form)

    def extract(self, serialized_tensor: runtime_pb2.Tensor) -> torch.Tensor:
        """Raises Unusable unless it is a part of this codec with nothing but finite values."""
        form, content = serialized_tensor.dtype, serialized_tensor.buffer
        shape = torch.Size(serialized_tensor.size)
        if form not in FORMS[self.name]:
            raise Unusable(Fault.CODEC)
        if len(content) != _size(form, shape.numel()):
            raise Unusable(Fault.LENGTH)
        flat = _READERS[form](content, shape.numel())
        if not bool(torch.isfinite(flat).all()):
            raise Unusable(Fault.NOT_FINITE)
        return flat.reshape(shape)

    def as_received(self, tensor: torch.Tensor) -> torch.Tensor:
        """What the others would get of it."""
        return self.extract(self.compress(tensor))


def _size(form: str, count: int) -> int:
    blocks = -(-count // BLOCK)
    return {"fp32": 4 * count, "fp16": 2 + 2 * count, "int8": 4 * blocks + count}[form]


def _to_fp16(flat: torch.Tensor) -> bytes:
    """A power of 2 brings the largest value to 2^14..2^15, so half precision holds it."""
    largest = float(flat.abs().max()) if flat.numel() else 0.0
    exponent = max(math.frexp(largest)[1] - 15, LEAST_EXPONENT) if largest else 0
    halves = (flat * 2.0**-exponent).to(torch.float16)
    return np.array([exponent], "<i2").tobytes() + halves.numpy().astype("<f2").tobytes()


def _from_fp16(content: bytes, count: int) -> torch.Tensor:
    exponent = int(np.frombuffer(content, "<i2", 1)[0])
    halves = torch.from_numpy(np.frombuffer(content, "<f2", count, 2).astype(np.float32))
    return torch.ldexp(halves, torch.tensor(exponent))


def _to_int8(flat: torch.Tensor) -> bytes | None:
    """None when too many values would become 0 beside a much larger one."""
    blocks = torch.nn.functional.pad(flat, (0, -flat.numel() % BLOCK)).view(-1, BLOCK)
    scales = blocks.abs().amax(1) / 127
    steps = (blocks / scales.where(scales > 0, torch.ones(()))[:, None]).round_()
    crushed = int(((steps == 0) & (blocks != 0)).sum())
    if crushed > MOST_CRUSHED * flat.numel():
        return None
    values = steps.to(torch.int8).view(-1)[: flat.numel()]
    return scales.numpy().astype("<f4").tobytes() + values.numpy().tobytes()


def _from_int8(content: bytes, count: int) -> torch.Tensor:
    num_blocks = -(-count // BLOCK)
    scales = torch.from_numpy(np.frombuffer(content, "<f4", num_blocks).astype(np.float32))
    steps = np.frombuffer(content, np.int8, count, 4 * num_blocks).astype(np.float32)
    return torch.from_numpy(steps) * scales.repeat_interleave(BLOCK)[:count]


def _from_fp32(content: bytes, count: int) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(content, "<f4", count).astype(np.float32))


_READERS = {"fp32": _from_fp32, "fp16": _from_fp16, "int8": _from_int8}
