"""Machines that volunteers lend: memory, its bandwidth, and dense FLOP/s by kind of number.

All from their makers' data sheets, without sparsity, which doubles what tensor cores claim. "fp32"
is what the engine trains in; "tf32" needs a switch in torch, "fp16" and "int8" run on tensor cores
and add up in 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

GB = 10**9
GIB = 2**30


@dataclass(frozen=True)
class Device:
    """`flops` are FLOP/s; what its maker does not state is left out. `is_gpu`: with memory of its
    own, which the engine trains in; others train on the processor, whose speed is `flops` then.
    """

    name: str
    memory_bytes: int
    bandwidth_bytes_s: float
    flops: Mapping[str, float]
    source: str
    is_gpu: bool = True
    remark: str = ""

    @property
    def usable_bytes(self) -> int:
        """Nine tenths of a GPU's memory, for its driver and fragments take some; three quarters of
        a computer's, for other programs run there. Our choice, not a measurement.
        """
        return int(self.memory_bytes * (0.9 if self.is_gpu else 0.75))


TURING = "NVIDIA Turing GPU architecture whitepaper, 2018"
VOLTA = "NVIDIA V100 data sheet, January 2020"
AMPERE = "NVIDIA A100 data sheet, 2021"
HOPPER = "NVIDIA H100 data sheet, 2022; halved where that counts sparsity"
GRACE = "NVIDIA GH200 data sheet, 2023; halved where that counts sparsity"
GA102 = "NVIDIA Ampere GA102 GPU architecture whitepaper, v2"
ADA = "NVIDIA Ada GPU architecture whitepaper, v2"
ON_PROCESSOR = "The engine uses its processor, not its GPU, so its speed here must be measured."


def _gpu(name: str, gb: int, gb_s: float, source: str, **tera: float) -> Device:
    """A GPU's memory is in units of 2^30 bytes, whatever its name says."""
    flops = {kind: number * 1e12 for kind, number in tera.items()}
    return Device(name, gb * GIB, gb_s * GB, flops, source)


def _apple(name: str, gb: int, gb_s: float, source: str) -> Device:
    return Device(name, gb * GIB, gb_s * GB, {}, source, is_gpu=False, remark=ON_PROCESSOR)


def computer(memory_bytes: int) -> Device:
    """Somebody's, of which only the memory is known."""
    return Device("a computer", memory_bytes, 0, {}, "its owner's system", is_gpu=False)


DEVICES: Mapping[str, Device] = {
    "t4": _gpu(
        "NVIDIA T4",
        16,
        320,
        f"NVIDIA T4 product brief, 2020; {TURING}",
        fp32=8.1,
        fp16=65,
        int8=130,
    ),
    "v100": _gpu("NVIDIA V100 SXM2 16 GB", 16, 900, VOLTA, fp32=15.7, fp16=125),
    "v100-32gb": _gpu("NVIDIA V100 SXM2 32 GB", 32, 900, VOLTA, fp32=15.7, fp16=125),
    "v100-pcie": _gpu("NVIDIA V100 PCIe 16 GB", 16, 900, VOLTA, fp32=14, fp16=112),
    "a100": _gpu("NVIDIA A100 40 GB", 40, 1555, AMPERE, fp32=19.5, tf32=156, fp16=312, int8=624),
    "a100-80gb": _gpu(
        "NVIDIA A100 SXM 80 GB", 80, 2039, AMPERE, fp32=19.5, tf32=156, fp16=312, int8=624
    ),
    "h100": _gpu(
        "NVIDIA H100 SXM 80 GB", 80, 3350, HOPPER, fp32=67, tf32=494.5, fp16=989.5, int8=1979
    ),
    "h100-pcie": _gpu(
        "NVIDIA H100 PCIe 80 GB", 80, 2000, HOPPER, fp32=51, tf32=378, fp16=756.5, int8=1513
    ),
    "gh200": _gpu(
        "NVIDIA GH200 96 GB", 96, 4000, GRACE, fp32=67, tf32=494.5, fp16=989.5, int8=1979
    ),
    "rtx-2080-ti": _gpu("NVIDIA RTX 2080 Ti", 11, 616, TURING, fp32=13.4, fp16=53.8),
    "rtx-3070": _gpu("NVIDIA RTX 3070", 8, 448, GA102, fp32=20.3, fp16=40.6),
    "rtx-3080": _gpu("NVIDIA RTX 3080 10 GB", 10, 760, GA102, fp32=29.8, fp16=59.5),
    "rtx-3090": _gpu("NVIDIA RTX 3090", 24, 936, GA102, fp32=35.6, fp16=71),
    "rtx-4090": _gpu("NVIDIA RTX 4090", 24, 1008, ADA, fp32=82.6, fp16=165.2),
    "apple-m2": _apple("Apple M2, 8 GB", 8, 100, "Apple: Apple unveils M2, June 2022"),
    "apple-m1-pro": _apple(
        "Apple M1 Pro, 16 GB", 16, 200, "Apple: Introducing M1 Pro and M1 Max, October 2021"
    ),
    "apple-m1-max": _apple(
        "Apple M1 Max, 32 GB", 32, 400, "Apple: Introducing M1 Pro and M1 Max, October 2021"
    ),
    "laptop": Device(
        "a laptop of 2017, Intel i5-8250U, 8 GB",
        8 * GIB,
        34.1 * GB,
        {"fp32": 4 * 1.6e9 * 32},
        "Intel ARK: 4 cores of 1.6 GHz with AVX2; 2 x 8 fused multiply-adds a cycle, by Intel's "
        "optimisation manual",
        is_gpu=False,
    ),
}


def named(text: str) -> Device | None:
    """The one that its driver calls `text`, as "NVIDIA A100-SXM4-80GB"; None: not in here.

    All parts of its key must be in there; of several, the one with most parts.
    """
    words = set(re.split(r"[^a-z0-9]+", text.lower()))
    fitting = [key for key in DEVICES if words.issuperset(key.split("-"))]
    return DEVICES[max(fitting, key=lambda key: key.count("-"))] if fitting else None


def find(key: str) -> Device:
    """Raises ValueError with all names when there is no such device."""
    device = DEVICES.get(key.lower())
    if device is None:
        raise ValueError(f"device {key!r} is not known: choose one of {', '.join(DEVICES)}")
    return device
