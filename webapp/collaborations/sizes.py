"""What a recipe asks of each machine, before anybody lends one."""

from __future__ import annotations

from dataclasses import dataclass

from trainer import catalogue
from trainer.recipe import CODEC_BYTES, Recipe

# float32, 4 bytes each: parameters, gradient, AdamW's two moments, the round's sum, the anchor,
# and what the averager holds twice (8 bytes in /dev/shm). Activations come on top.
MEMORY_BYTES_PER_PARAMETER = 32
# What an average makes a device send and receive, in vectors: its own out and the mean back in,
# and as much again for its part of the averaging, where devices share that equally.
VECTORS = {"peers": 4, "coordinator": 2}
MOST_MEMORY_BYTES = 16 * 10**9


@dataclass(frozen=True)
class Size:
    """`memory_bytes` is of one device, `round_bytes` about what it sends and receives in a round.

    `coordinator_bytes` is what each device costs a coordinator that averages alone, else 0.
    """

    parameters: int
    memory_bytes: int
    round_bytes: int
    coordinator_bytes: int

    @property
    def is_too_large(self) -> bool:
        """For nearly every machine that a volunteer would lend."""
        return self.memory_bytes > MOST_MEMORY_BYTES


def size_of(recipe: Recipe) -> Size:
    """Raises ValueError for an unknown family."""
    family = catalogue.create("families", recipe.family)
    parameters = family.parameter_count(recipe.tokenizer.vocab_size)
    timing = recipe.round
    round_bytes = int(VECTORS[timing.averaged_by] * CODEC_BYTES[timing.codec] * parameters)
    return Size(
        parameters=parameters,
        memory_bytes=parameters * MEMORY_BYTES_PER_PARAMETER,
        round_bytes=round_bytes,
        coordinator_bytes=round_bytes if timing.averaged_by == "coordinator" else 0,
    )
