"""What a plan rests on: parts of memory, bytes of a round and work, of a model or a recipe."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, replace

from trainer import catalogue
from trainer.planner import shapes, traffic, training
from trainer.planner.need import need_of
from trainer.planner.training import Part
from trainer.planner.words import count
from trainer.recipe import Recipe

ROUND_S = 60.0


@dataclass(frozen=True)
class Book:
    """`used`: parameters that compute something for a token, a shared one each time; 0 where the
    model is not trained from the beginning.
    """

    title: str
    parts: tuple[Part, ...]
    parameters: float
    used: float
    round_bytes: int
    round_s: float = ROUND_S
    remarks: tuple[str, ...] = ()


def of_recipe(recipe: Recipe, sequences: int = 0, *, on_gpu: bool = False) -> Book:
    """Raises ValueError for an unknown family or strategy."""
    need = need_of(recipe, sequences or None, on_gpu=on_gpu)
    family = catalogue.create("families", recipe.family)
    strategy = catalogue.create("strategies", recipe.strategy)
    number = count(need.parameters)
    return Book(
        f"{recipe.collaboration}: {family.label}, {number} parameters, {strategy.label}",
        need.parts,
        need.parameters,
        family.used_parameters(recipe.tokenizer.vocab_size),
        traffic.recipe_round_bytes(recipe, need.parameters, strategy.vectors),
        recipe.round.deadline_s,
    )


def of_model(given: Namespace) -> Book:
    """By the options of `plan`. Raises ValueError when they make no sense together."""
    shape = shapes.SHAPES.get(given.model or "")
    parameters = shape.parameters if shape else given.parameters
    trained, remarks = parameters, []
    if given.lora:
        if shape is None:
            raise ValueError("--lora needs the layout of the model: give --model")
        trained = shapes.lora_parameters(shape, given.lora)
        parts = training.lora_parts(parameters, trained, given.base)
        remarks.append(f"LoRA trains {count(trained)} parameters, {trained / parameters:.2%}.")
    else:
        split = (given.precision, given.optimizer, given.zero, given.gpus)
        parts = training.training_parts(parameters, *split)
        if caveat := training.PRECISIONS[given.precision].caveat:
            remarks.append(caveat)
        remarks += _deepspeed(parameters, given)
    remarks.append("Temporary buffers and fragments of memory come on top.")
    if shape is None:
        remarks.append("So do activations, for which the layout must be known (--model).")
    else:
        parts.append(_activations(shape, given))
    swarm = training.swarm_parts(trained)
    if given.gpus > 1:  # the first process has them in the computer's memory
        swarm = [replace(part, on_host=True) for part in swarm]
    return Book(
        f"{given.model or 'A model'}: {count(parameters)} parameters",
        tuple(part for part in (*parts, *swarm) if part.bytes),
        parameters,
        0 if given.lora else parameters,
        traffic.round_bytes(trained, given.codec),
        remarks=tuple(remarks),
    )


def _activations(shape: shapes.Shape, given: Namespace) -> Part:
    """In 16 bits; twice that in fp32."""
    rows = given.sequences or 1
    kept = shapes.activation_bytes(shape, rows, given.length, checkpointing=given.checkpointing)
    factor = 2 if given.precision == "fp32" and not given.lora else 1
    return Part("activations", factor * kept, f"of {rows} x {given.length} tokens")


def _deepspeed(parameters: float, given: Namespace) -> list[str]:
    if given.precision != "mixed" or given.zero < 2:
        return []
    each = training.deepspeed_estimate(parameters, given.gpus, given.zero) / 1e9
    layer = ", and four bytes for each weight of the largest layer" if given.zero == 3 else ""
    return [f"DeepSpeed's own estimate of a GPU is {each:.2f} GB{layer}: its gradient has 32 bits."]
