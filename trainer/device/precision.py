"""What this device computes in where a recipe leaves that to it: whatever it is fast in."""

from __future__ import annotations

from typing import Literal

Kind = Literal["fp32", "bf16", "fp16"]

# After "this device computes".
WORDS: dict[Kind, str] = {
    "fp32": "in 32 bits",
    "bf16": "in 16 bits (bf16)",
    "fp16": "in 16 bits (fp16), with its losses scaled",
}
FAST_IN_BF16 = ("amx_bf16", "avx512_bf16")  # what processors call their instructions for it


def native() -> Kind:
    """A GPU without bf16 of its own, as a T4, has fp16; a processor is slow in that."""
    import torch

    if torch.cuda.is_available():
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    known = torch.cpu.get_capabilities()
    return "bf16" if any(known.get(name) for name in FAST_IN_BF16) else "fp32"
