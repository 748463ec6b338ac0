"""What the agent needs to take part in a collaboration, part by part, as its engine holds things.

All is float32, but for passes in 16 bits. The first process holds the model and what its rounds
need; the two that do the network and the averages are forked from it when the model is there.
Without a GPU they so keep what the first one held then, while it goes on to new values (copy on
write). Passes and the end of a round need memory in turn: what the one has freed is given back
before the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from trainer import catalogue
from trainer.planner import training
from trainer.planner.training import Part
from trainer.planner.ways import Way, is_streamable
from trainer.recipe import Base, Recipe

VALUE_BYTES = 4
# Of the tokens, as `data` has it; of a text after its prefix as much at most, half on average.
TARGET_SHARE = {"masked": 0.15, "causal": 1.0, "spans": 0.23, "prefix": 1.0}
COPIES = 3  # of a state that is handed on: the first process's, the one in shared memory, the sent
# On the processor the C library's heap has holes between what a pass keeps: measured at its height,
# 1.3 times as much in ALBERT, 1.5 in GPT-2, 1.7 in LLaMA and 2 there with LoRA, for which its
# family's count is a fifth high already. Where little is kept and computed again, not measured.
HEAP = 1.4
# Of what a pass keeps in 32 bits, what one in 16 bits does beside its weights in these: measured,
# 0.50 in ALBERT, 0.63 in GPT-2, 0.71 in LLaMA (torch 2.13 for the processor, 4 x 128 tokens).
MIXED = 0.75
# Measured: an agent with a model of 70 thousand parameters, Linux, torch 2.13 for the processor.
PROGRAM_BYTES = 700_000_000
# Measured: 23 MB of its own, all else is shared; what its parent later writes anew is its own then.
READER_BYTES = 50_000_000
EVALUATOR_BYTES = 500_000_000  # measured as well: there are no other processes


@dataclass(frozen=True)
class Need:
    """`parameters` are those that train; `on_gpu`: what is not `on_host` lies in its memory."""

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


def need_of(
    recipe: Recipe,
    sequences: int | None = None,
    *,
    on_gpu: bool = False,
    way: Way = Way.PLAIN,
) -> Need:
    """With `sequences` at once; None: as many as the recipe says, and 1 where devices find it, or
    `way` is another than the plain one.

    Raises ValueError for an unknown family or strategy.
    """
    if way is Way.EVALUATING:
        return _evaluation(recipe, on_gpu=on_gpu)
    family = catalogue.family_of(recipe)
    strategy = catalogue.create("strategies", recipe.strategy)
    parameters = catalogue.trained_parameters(recipe)
    rows = sequences or (recipe.micro_batch if way is Way.PLAIN else None) or 1
    vector = VALUE_BYTES * parameters
    optimizer = strategy.optimizer
    if optimizer == "sgd" and strategy.momentum:
        optimizer = "momentum"
    shared, own = strategy.extra()
    moments = training.OPTIMIZERS[optimizer]
    handed_on = 1 + shared + (0 if strategy.local else moments)  # what newcomers download
    offered = catalogue.offered_values(recipe) / parameters
    kept = activation_bytes(family, recipe, rows, recomputes=way is not Way.PLAIN, on_gpu=on_gpu)
    if way is Way.PLAIN and not on_gpu:
        kept = round(HEAP * kept)
    pass_bytes = vector + kept
    step = round((1 + (2 if on_gpu else 1) * offered) * vector)  # the average is brought there
    copies = round((offered + handed_on) * vector)
    sent = round(offered * vector)
    parts = [
        _streamed(recipe) if way is Way.STREAMED else _frozen(recipe),
        *training.training_parts(parameters, "fp32", optimizer),
        *training.swarm_parts(parameters, state=shared + own, offered=offered),
        Part("good state", handed_on * vector, "to go back to after a bad step", on_host=True),
        Part("activations", pass_bytes, f"of {rows} sequences, and the gradient in the making"),
        *_ends(step, copies, pass_bytes, on_gpu=on_gpu),
        Part("averages on their way", sent, "in the averaging process", on_host=True),
        Part("for a newcomer", COPIES * handed_on * vector, "the state it downloads", on_host=True),
    ]
    if way is Way.PLAIN:
        parts.append(Part("texts", READER_BYTES, "read beside training", on_host=True))
    if not on_gpu:
        forked = (3 + moments) * vector
        parts.append(
            Part("kept by forked processes", forked, "weights as they began, and the like")
        )
    parts.append(Part("programs", PROGRAM_BYTES, "Python, torch and hivemind", on_host=True))
    return Need(parameters, tuple(part for part in parts if part.bytes), on_gpu)


def _evaluation(recipe: Recipe, *, on_gpu: bool) -> Need:
    """Of who holds the parameters and nothing that training needs."""
    family, parameters = catalogue.family_of(recipe), catalogue.trained_parameters(recipe)
    in_fp32 = recipe.model_copy(update={"precision": "fp32"})  # as all measure alike
    parts = (
        _streamed(recipe) if is_streamable(recipe) else _frozen(recipe),
        Part("weights", VALUE_BYTES * parameters, "what the model is"),
        Part("a pass", activation_bytes(family, in_fp32, 1, recomputes=True), "of one sequence"),
        Part("programs", EVALUATOR_BYTES, "Python and torch", on_host=True),
    )
    return Need(parameters, tuple(part for part in parts if part.bytes), on_gpu)


def _ends(step: int, copies: int, pass_bytes: int, *, on_gpu: bool) -> list[Part]:
    """Bytes of a round's end, beyond those that passes held in the same place: of the step (the
    offer, and what the optimizer works with), and of copies (the average, the next good state).
    """
    name, words = "a round's end", "the step, and the next good state; beyond activations"
    if not on_gpu:
        return [Part(name, max(0, step + copies - pass_bytes), words)]
    return [
        Part(name, max(0, step - pass_bytes), words),
        Part("a round's copies", copies, "the average and the next good state", on_host=True),
    ]


def _frozen(recipe: Recipe) -> Part:
    """What an adapter leaves as it is."""
    if recipe.base is None or recipe.adapter is None:
        return Part("frozen base", 0)
    base, frozen = recipe.base, catalogue.adapter_of(recipe).frozen_parameters(recipe.base)
    matrices = min(frozen, _matrix_values(base))
    each = {"fp32": 4.0, "bf16": 2.0, **training.FROZEN_BYTES}[base.precision]
    held = _rest_bytes(base) * (frozen - matrices) + each * matrices
    return Part("frozen base", round(held), f"its matrices in {base.precision}")


def _streamed(recipe: Recipe) -> Part:
    """The largest layer, or what is outside of layers: the word vectors, which also score."""
    base = recipe.base
    assert base is not None, "what is frozen is a base"
    words = "of the frozen base at once; the rest is read when it is needed"
    return Part("layer in use", _rest_bytes(base) * _largest(base), words)


def _largest(base: Base) -> int:
    """Values of the largest layer, or of what is outside of layers."""
    layer = max(base.stack.layers) if base.stack else _matrix_values(base)
    return max(layer, base.parameters - _matrix_values(base))


def _rest_bytes(base: Base) -> int:
    """Of a value outside of the layers' matrices."""
    return 2 if base.precision == "bf16" else VALUE_BYTES


def _matrix_values(base: Base) -> int:
    return sum(m.count * m.inputs * m.outputs for m in base.matrices)


def activation_bytes(
    family: Any, recipe: Recipe, sequences: int, *, recomputes: bool = False, on_gpu: bool = False
) -> int:
    """At the height of a pass: what is kept for the gradient, and two gradients of the scores.

    A GPU computes in 16 bits where the recipe permits it; another device may, or may not.
    """
    tokens, words = sequences * recipe.sequence_length, recipe.tokenizer.vocab_size
    targets = math.ceil(TARGET_SHARE[family.objective.kind] * tokens)
    kept = family.recomputed_values if recomputes else family.activation_values
    whole = VALUE_BYTES * int(kept(words, tokens, targets) + 2 * targets * words)
    if recipe.precision == "fp32":
        return whole
    mixed = round(MIXED * whole) + _copied(family, recipe, recomputes=recomputes)
    return mixed if on_gpu else max(whole, mixed)


def _copied(family: Any, recipe: Recipe, *, recomputes: bool) -> int:
    """Bytes of weights in 16 bits: of all that a pass needs, or, of frozen layers that are computed
    again, of one at a time.
    """
    base = recipe.base
    if base is None or recipe.adapter is None or not recomputes:
        return 2 * int(family.parameter_count(recipe.tokenizer.vocab_size))
    return 2 * (_largest(base) + catalogue.trained_parameters(recipe))
