"""What a recipe asks of each machine, before anybody lends one."""

from __future__ import annotations

from dataclasses import dataclass

from trainer import catalogue
from trainer.planner.need import need_of
from trainer.planner.traffic import recipe_round_bytes
from trainer.planner.training import Part
from trainer.recipe import Recipe

MOST_MEMORY_BYTES = 16 * 10**9


@dataclass(frozen=True)
class Size:
    """`parts` and `memory_bytes` are of one device without a GPU, with one sequence at once or as
    many as the recipe says; `round_bytes` about what it sends and receives in a round.

    `coordinator_bytes` is what each device costs a coordinator that averages alone, else 0.
    """

    parameters: int
    parts: tuple[Part, ...]
    memory_bytes: int
    round_bytes: int
    coordinator_bytes: int

    @property
    def is_too_large(self) -> bool:
        """For nearly every machine that a volunteer would lend."""
        return self.memory_bytes > MOST_MEMORY_BYTES


def size_of(recipe: Recipe) -> Size:
    """Raises ValueError for an unknown family or strategy."""
    need = need_of(recipe)
    round_bytes = recipe_round_bytes(recipe)
    return Size(
        parameters=need.parameters,
        parts=need.parts,
        memory_bytes=need.total,
        round_bytes=round_bytes,
        coordinator_bytes=round_bytes if recipe.round.averaged_by == "coordinator" else 0,
    )


def check_length(recipe: Recipe) -> None:
    """Raises ValueError where a model has no place for the recipe's sequences."""
    longest = getattr(catalogue.create("families", recipe.family).params, "length", None)
    if longest is not None and recipe.sequence_length > longest:
        raise ValueError(
            f"Sequences of {recipe.sequence_length} tokens do not fit a model for {longest}: "
            "lower the sequence length or raise the model's length."
        )
