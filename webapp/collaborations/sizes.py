"""What a recipe asks of each machine, before anybody lends one."""

from __future__ import annotations

from dataclasses import dataclass

from trainer import catalogue
from trainer.recipe import CODEC_BYTES, Recipe

# float32, 4 bytes each: parameters, gradient, AdamW's two moments, the round's sum, the anchor,
# and what the averager holds twice (8 bytes in /dev/shm). Activations come on top.
MEMORY_BYTES_PER_PARAMETER = 32
# For each further vector of an offer: everybody's, the device's own and the round's, and what the
# averager holds twice.
MORE_BYTES_PER_PARAMETER = 20
# What an average of one vector makes a device send and receive, in vectors: its own out and the
# mean back in, and as much again for its part of the averaging, where devices share that equally.
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
    """Raises ValueError for an unknown family or strategy."""
    family = catalogue.create("families", recipe.family)
    parameters = family.parameter_count(recipe.tokenizer.vocab_size)
    timing = recipe.round
    vectors = catalogue.create("strategies", recipe.strategy).vectors
    values = VECTORS[timing.averaged_by] * vectors * parameters
    round_bytes = int(CODEC_BYTES[timing.codec] * values)
    each_bytes = MEMORY_BYTES_PER_PARAMETER + MORE_BYTES_PER_PARAMETER * (vectors - 1)
    return Size(
        parameters=parameters,
        memory_bytes=parameters * each_bytes,
        round_bytes=round_bytes,
        coordinator_bytes=round_bytes if timing.averaged_by == "coordinator" else 0,
    )
