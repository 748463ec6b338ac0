"""Memory of training by the book: weights, gradients and optimizer state, split by ZeRO, or LoRA.

Bytes a parameter as in Rajbhandari et al. 2020 (ZeRO), sections 3.1 and 5. What comes on top
(activations, temporary buffers, fragmentation) is in `shapes`, or in `need` for our own engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Part:
    """`bytes` that a machine must hold, and what for. `on_host`: beside a GPU, not on it."""

    name: str
    bytes: int
    words: str = ""
    on_host: bool = False


def total(parts: Sequence[Part]) -> int:
    return sum(part.bytes for part in parts)


@dataclass(frozen=True)
class Precision:
    """Bytes of one value. `master`: a copy of the weights in 32 bits, for the optimizer."""

    weights: float
    gradients: float
    state: float
    master: float = 0
    caveat: str = ""


PRECISIONS = {
    "fp32": Precision(4, 4, 4),
    "fp16": Precision(2, 2, 2, caveat="Adam in 16 bits throughout loses small steps: use mixed."),
    "int8": Precision(
        1, 1, 1, caveat="Arithmetic only: nobody trains with Adam in 8 bits throughout."
    ),
    "mixed": Precision(2, 2, 4, master=4),
}

# Values of state a parameter, each of the precision's bytes; for adam8bit bytes whatever that is.
OPTIMIZERS = {"adamw": 2, "lamb": 2, "momentum": 1, "sgd": 0, "adafactor": 0, "adam8bit": 2}
EIGHT_BITS = "adam8bit"

# Bytes of a frozen weight. nf4: 4 bits and, with double quantisation, 0.127 for its scales
# (Dettmers et al. 2023, section 3).
FROZEN_BYTES = {"fp32": 4.0, "fp16": 2.0, "int8": 1.0, "nf4": 4.127 / 8}


def training_parts(
    parameters: float,
    precision: str = "fp32",
    optimizer: str = "adamw",
    zero: int = 0,
    gpus: int = 1,
) -> list[Part]:
    """Of one of `gpus`, which split the optimizer's state (`zero` 1), the gradient too (2) and the
    weights too (3). Raises ValueError when one of these makes no sense.
    """
    each = _known("precision", precision, PRECISIONS)
    values = _known("optimizer", optimizer, OPTIMIZERS)
    if not 0 <= zero <= 3:
        raise ValueError(f"ZeRO stage {zero} does not exist: choose 1, 2 or 3, or 0 for none")
    if gpus < 1 or parameters <= 0:
        raise ValueError(f"{parameters:g} parameters on {gpus} GPUs: both must be at least 1")
    state = 1.0 if optimizer == EIGHT_BITS else each.state
    split = [gpus if zero >= stage else 1 for stage in (1, 2, 3)]
    rows = [
        ("weights", each.weights / split[2], "what the model is"),
        ("32-bit copy of the weights", each.master / split[0], "what mixed precision changes"),
        ("gradient", each.gradients / split[1], "one value for each weight that trains"),
        ("optimizer state", values * state / split[0], f"of {optimizer}"),
    ]
    return [Part(name, round(parameters * each_bytes), words) for name, each_bytes, words in rows]


def lora_parts(parameters: float, trained: float, frozen: str = "fp16") -> list[Part]:
    """A frozen base and `trained` adapter weights, these in fp32 with AdamW: b N + 16 T bytes.

    Hu et al. 2021, section 4.2. Raises ValueError on an unknown `frozen`.
    """
    each = _known("base", frozen, FROZEN_BYTES)
    base = Part("frozen base", round(parameters * each), f"its weights in {frozen}")
    return [base, *training_parts(trained)]


def swarm_parts(parameters: float, *, state: int = 0, offered: float = 1) -> list[Part]:
    """What taking part in a swarm adds, in fp32, where `parameters` train: the anchor, `state`
    vectors of the strategy beside its optimizer's, and the buffer of an offer of `offered` vectors.
    """
    vector = round(4 * parameters)
    buffer = round(offered * vector)
    return [
        Part("anchor", vector, "what all peers shared when the round began"),
        Part("strategy state", state * vector, "what the strategy keeps from round to round"),
        Part("averaging buffer", buffer, "an offer, in shared memory", on_host=True),
    ]


def deepspeed_estimate(parameters: float, gpus: int, zero: int, largest_layer: float = 0) -> float:
    """Bytes of one GPU by DeepSpeed's `estimate_zero2_model_states_mem_needs` and `..zero3..`.

    They count 18 bytes a parameter, 2 more than the paper: the gradient in 32 bits as well.
    """
    if zero == 2:
        return 2 * parameters + 18 * parameters / gpus
    if zero == 3:
        return 4 * largest_layer + 18 * parameters / gpus
    raise ValueError(f"DeepSpeed estimates ZeRO stages 2 and 3, not {zero}")


def _known(kind: str, name: str, table: Mapping[str, Kind]) -> Kind:
    if name not in table:
        raise ValueError(f"{kind} {name!r} is not known: choose one of {', '.join(table)}")
    return table[name]
