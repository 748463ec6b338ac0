"""What a plan rests on: parts of memory, bytes of a round and work, of a model or a recipe."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainer import catalogue
from trainer.planner import shapes, traffic, training
from trainer.planner.need import need_of
from trainer.planner.training import Part
from trainer.planner.words import count
from trainer.recipe import Recipe

ROUND_S = 60.0
TOKENS = 512  # of a sequence
CODEC = "fp16"  # of averages


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
    family = catalogue.family_of(recipe)
    strategy = catalogue.create("strategies", recipe.strategy)
    number = count(need.parameters)
    if recipe.base and recipe.adapter:
        number += f" of {count(recipe.base.parameters)}"
    return Book(
        f"{recipe.collaboration}: {family.label}, {number} parameters, {strategy.label}",
        need.parts,
        need.parameters,
        0 if recipe.base else family.used_parameters(recipe.tokenizer.vocab_size),
        traffic.recipe_round_bytes(recipe),
        recipe.round.deadline_s,
    )


@dataclass(frozen=True)
class Setting:
    """How a model is trained that no recipe describes. `rank` 0: all of it, not LoRA on `base`."""

    precision: str = "fp32"
    optimizer: str = "adamw"
    zero: int = 0
    gpus: int = 1
    rank: int = 0
    base: str = "fp16"
    sequences: int = 1


def of_model(name: str, parameters: float, setting: Setting) -> Book:
    """Raises ValueError when the setting makes no sense for it."""
    shape = shapes.SHAPES.get(name)
    trained, remarks = parameters, []
    if setting.rank:
        if shape is None:
            raise ValueError(f"LoRA needs a layout: name one of {', '.join(shapes.SHAPES)}")
        trained = shapes.lora_parameters(shape, setting.rank)
        parts = training.lora_parts(parameters, trained, setting.base)
        remarks.append(f"LoRA trains {count(trained)} parameters, {trained / parameters:.2%}.")
    else:
        split = (setting.precision, setting.optimizer, setting.zero, setting.gpus)
        parts = training.training_parts(parameters, *split)
        if caveat := training.PRECISIONS[setting.precision].caveat:
            remarks.append(caveat)
        remarks += _deepspeed(parameters, setting)
    remarks.append("Temporary buffers and fragments of memory come on top.")
    if shape is None:
        remarks.append("So do activations, for which the layout must be known.")
    else:
        parts.append(_activations(shape, setting))
    swarm = training.swarm_parts(trained)
    if setting.gpus > 1:  # the first process has them in the computer's memory
        swarm = [replace(part, on_host=True) for part in swarm]
    return Book(
        f"{name}: {count(parameters)} parameters",
        tuple(part for part in (*parts, *swarm) if part.bytes),
        parameters,
        0 if setting.rank else parameters,
        traffic.round_bytes(trained, CODEC),
        remarks=tuple(remarks),
    )


def _activations(shape: shapes.Shape, setting: Setting) -> Part:
    """In 16 bits; twice that in fp32."""
    rows = setting.sequences
    kept = shapes.activation_bytes(shape, rows, TOKENS)
    factor = 2 if setting.precision == "fp32" and not setting.rank else 1
    return Part("activations", factor * kept, f"of {rows} x {TOKENS} tokens")


def _deepspeed(parameters: float, setting: Setting) -> list[str]:
    if setting.precision != "mixed" or setting.zero < 2:
        return []
    each = training.deepspeed_estimate(parameters, setting.gpus, setting.zero) / 1e9
    layer = ", and four bytes for each weight of the largest layer" if setting.zero == 3 else ""
    return [f"DeepSpeed's own estimate of a GPU is {each:.2f} GB{layer}: its gradient has 32 bits."]
