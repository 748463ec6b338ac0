"""How a device takes part whose memory is short for a recipe: the less it has, the further down."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from trainer.recipe import Recipe

STREAMABLE = ("fp32", "bf16")  # precisions that a layer can be read in as it is


class Way(IntEnum):
    """PLAIN: as the recipe says. RECOMPUTED: one sequence at once, and each layer keeps what goes
    into it alone. STREAMED: that, and of a frozen base only the layer in use is held.
    """

    PLAIN = 0
    RECOMPUTED = 1
    STREAMED = 2

    @property
    def words(self) -> str:
        """After "it fits"; "" where there is nothing to say."""
        return WORDS[self]


WORDS = {
    Way.PLAIN: "",
    Way.RECOMPUTED: "with one sequence at once, of which part is computed again to save memory",
    Way.STREAMED: "with its frozen layers read from disk each time that they are needed",
}


def ways_of(recipe: Recipe) -> Sequence[Way]:
    """The best first."""
    if recipe.base is None or recipe.adapter is None or recipe.base.precision not in STREAMABLE:
        return (Way.PLAIN, Way.RECOMPUTED)
    return tuple(Way)
