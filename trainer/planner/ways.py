"""How a device takes part whose memory is short for a recipe: the less it has, the further down."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from trainer.recipe import Recipe

STREAMABLE = ("fp32", "bf16")  # precisions that a layer can be read in as it is


class Way(IntEnum):
    """PLAIN: as the recipe says. RECOMPUTED: one sequence at once, and each layer keeps what goes
    into it alone. STREAMED: that, and of a frozen base only the layer in use is held. EVALUATING:
    nothing is trained, but a checkpoint is measured with a part of the held-out text.
    """

    PLAIN = 0
    RECOMPUTED = 1
    STREAMED = 2
    EVALUATING = 3

    @property
    def words(self) -> str:
        """After "it fits"; "" where there is nothing to say."""
        return WORDS[self]


WORDS = {
    Way.PLAIN: "",
    Way.RECOMPUTED: "with one sequence at once, of which part is computed again to save memory",
    Way.STREAMED: "with its frozen layers read from disk each time that they are needed",
    Way.EVALUATING: "not to train, but to measure the model with a part of the held-out text",
}


def ways_of(recipe: Recipe) -> Sequence[Way]:
    """The best first."""
    streamed = (Way.STREAMED,) if is_streamable(recipe) else ()
    evaluating = (Way.EVALUATING,) if is_evaluable(recipe) else ()
    return (Way.PLAIN, Way.RECOMPUTED, *streamed, *evaluating)


def is_streamable(recipe: Recipe) -> bool:
    """Whether most of it is frozen, and lies in files as it is used."""
    base = recipe.base
    return base is not None and recipe.adapter is not None and base.precision in STREAMABLE


def is_evaluable(recipe: Recipe) -> bool:
    """Whether any device can read the held-out text, and comes there without texts of its own."""
    text = recipe.held_out
    return text is not None and text.kind in ("site", "http") and not recipe.is_private
