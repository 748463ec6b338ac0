"""What a recipe asks of each machine, before anybody lends one."""

from __future__ import annotations

from dataclasses import dataclass

from trainer import catalogue
from trainer.recipe import Recipe

# float32, 4 bytes each: parameters, gradient, AdamW's two moments, the round's sum, the anchor,
# and what the averager holds twice (8 bytes in /dev/shm). Activations come on top.
MEMORY_BYTES_PER_PARAMETER = 32
# An all-reduce sends every parameter to be averaged and takes the averages back.
ROUND_BYTES_PER_PARAMETER = 8
MOST_MEMORY_BYTES = 16 * 10**9


@dataclass(frozen=True)
class Size:
    """`memory_bytes` is of one device, `round_bytes` what it sends at most in a round, and gets."""

    parameters: int
    memory_bytes: int
    round_bytes: int

    @property
    def is_too_large(self) -> bool:
        """For nearly every machine that a volunteer would lend."""
        return self.memory_bytes > MOST_MEMORY_BYTES


def size_of(recipe: Recipe) -> Size:
    """Raises ValueError for an unknown family."""
    family = catalogue.create("families", recipe.family)
    parameters = family.parameter_count(recipe.tokenizer.vocab_size)
    return Size(
        parameters=parameters,
        memory_bytes=parameters * MEMORY_BYTES_PER_PARAMETER,
        round_bytes=parameters * ROUND_BYTES_PER_PARAMETER,
    )
