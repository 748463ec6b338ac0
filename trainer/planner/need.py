"""What the agent needs to take part in a collaboration, part by part, as its engine holds things.

All is float32. The first process holds the model and what its rounds need; the two that do the
network and the averages are forked from it when the model is there. Without a GPU they so keep what
the first one held then, while it goes on to new values (copy on write).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from trainer import catalogue
from trainer.planner import training
from trainer.planner.training import Part
from trainer.recipe import Recipe

VALUE_BYTES = 4
TARGET_SHARE = {"masked": 0.15, "causal": 1.0}  # of the tokens, as `data.masking` has it
# Measured: an agent with a model of 70 thousand parameters, Linux, torch 2.13 for the processor.
PROGRAM_BYTES = 700_000_000


@dataclass(frozen=True)
class Need:
    """`on_gpu`: parts that are not `on_host` lie in the GPU's memory."""

    parameters: int
    parts: tuple[Part, ...]
    on_gpu: bool = False

    @property
    def total(self) -> int:
        return training.total(self.parts)

    @property
    def gpu_bytes(self) -> int:
        return training.total([p for p in self.parts if not p.on_host]) if self.on_gpu else 0

    @property
    def host_bytes(self) -> int:
        return self.total - self.gpu_bytes


def need_of(recipe: Recipe, sequences: int | None = None, *, on_gpu: bool = False) -> Need:
    """With `sequences` at once; None: as many as the recipe says, and 1 where devices find it.

    Raises ValueError for an unknown family or strategy.
    """
    family = catalogue.create("families", recipe.family)
    strategy = catalogue.create("strategies", recipe.strategy)
    parameters = family.parameter_count(recipe.tokenizer.vocab_size)
    rows = sequences or recipe.micro_batch or 1
    vector = VALUE_BYTES * parameters
    optimizer = strategy.optimizer
    if optimizer == "sgd" and strategy.momentum:
        optimizer = "momentum"
    shared, own = strategy.extra()
    moments = training.OPTIMIZERS[optimizer]
    handed_on = 1 + shared + (0 if strategy.local else moments)  # what newcomers download
    offered = strategy.vectors
    pass_bytes = vector + activation_bytes(family, recipe, rows)
    ending_bytes = (2 * offered + handed_on + 1) * vector
    parts = [
        *training.training_parts(parameters, "fp32", optimizer),
        *training.swarm_parts(parameters, state=shared + own, offered=offered),
        Part("good state", handed_on * vector, "to go back to after a bad step", on_host=True),
        Part("activations", pass_bytes, f"of {rows} sequences, and the gradient in the making"),
        *_ending(pass_bytes, ending_bytes, on_gpu),
        Part("averages on their way", offered * vector, "in the averaging process", on_host=True),
    ]
    if not on_gpu:
        forked = (3 + moments) * vector
        parts.append(
            Part("kept by forked processes", forked, "weights as they began, and the like")
        )
    parts.append(Part("programs", PROGRAM_BYTES, "Python, torch and hivemind", on_host=True))
    return Need(parameters, tuple(part for part in parts if part.bytes), on_gpu)


def activation_bytes(family: Any, recipe: Recipe, sequences: int) -> int:
    """At the height of a pass: what is kept for the gradient, and two gradients of the scores."""
    tokens, words = sequences * recipe.sequence_length, recipe.tokenizer.vocab_size
    targets = math.ceil(TARGET_SHARE[family.objective] * tokens)
    values = family.activation_values(words, tokens, targets) + 2 * targets * words
    return VALUE_BYTES * int(values)


def _ending(pass_bytes: int, ending_bytes: int, on_gpu: bool) -> list[Part]:
    """A round's end: the offer, the mean, a new good state and the optimizer's temporary. It reuses
    what the activations have left, unless that is on a GPU.
    """
    words = "the offer, the average and a copy of the state"
    if on_gpu:
        return [Part("end of a round", ending_bytes, words, on_host=True)]
    more = max(0, ending_bytes - pass_bytes)
    return [Part("end of a round", more, f"{words}, beyond what activations left")]
