"""Layouts of well-known language models: what their adapters hold, and what a pass keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A decoder. `inner`: the width of its feed-forward part; `gated`: that has three matrices."""

    parameters: float
    layers: int
    hidden: int
    heads: int
    inner: int
    gated: bool

    def matrices(self) -> dict[str, tuple[int, int]]:
        """{target: (inputs, outputs)} of one layer."""
        h, inner = self.hidden, self.inner
        found = dict.fromkeys(("q", "k", "v", "o"), (h, h))
        found |= {"up": (h, inner), "down": (inner, h)}
        return found | ({"gate": (h, inner)} if self.gated else {})


# Touvron et al. 2023, table 2 (exactly 6,738,415,616 parameters; 7e9 as it is called); Brown et al.
# 2020, table 2.1.
SHAPES = {
    "llama-7b": Shape(7e9, 32, 4096, 32, 11008, gated=True),
    "gpt3-175b": Shape(175e9, 96, 12288, 96, 4 * 12288, gated=False),
}


def lora_parameters(shape: Shape, rank: int, targets: tuple[str, ...] = ("q", "v")) -> int:
    """Sum of r (inputs + outputs) over the adapted matrices (Hu et al. 2021, section 4.2).

    Raises ValueError on a rank below 1 or a target that the model does not have.
    """
    if rank < 1:
        raise ValueError(f"LoRA's rank is {rank}: it must be at least 1, usual are 4 to 64")
    known = shape.matrices()
    unknown = [name for name in targets if name not in known]
    if unknown:
        raise ValueError(
            f"this model has no {', '.join(unknown)} to adapt: choose among {', '.join(known)}"
        )
    return shape.layers * rank * sum(sum(known[name]) for name in targets)


def activation_bytes(
    shape: Shape, sequences: int, length: int, *, checkpointing: bool = False, fused: bool = True
) -> int:
    """What a pass in 16 bits keeps for its gradient, with dropout: L s b h (34 + 5 a s / h).

    Korthikanti et al. 2022, equation 2; `checkpointing` keeps each layer's input only (2 s b h),
    and computes the rest again. `fused` attention (FlashAttention, what torch takes) does not keep
    the scores' 5 a s / h.
    """
    values = length * sequences * shape.hidden
    if checkpointing:
        return shape.layers * 2 * values
    scores = 0.0 if fused else 5 * shape.heads * length / shape.hidden
    return round(shape.layers * values * (34 + scores))
