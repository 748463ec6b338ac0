"""What an average sends and receives."""

from __future__ import annotations

from trainer import catalogue
from trainer.recipe import CODEC_BYTES, Recipe

# What an average of one vector makes a device send and receive at most, in vectors: its own out and
# the mean back in, and as much again for its part of the averaging, where devices share equally.
VECTORS = {"peers": 4, "coordinator": 2}
DAY_S = 86_400


def round_bytes(values: float, codec: str = "fp32", averaged_by: str = "peers") -> int:
    """Sent and received by a device in one round, where an offer has so many values."""
    return round(VECTORS[averaged_by] * CODEC_BYTES[codec] * values)


def day_bytes(round_bytes: float, round_s: float) -> int:
    """Where a round takes `round_s`."""
    return round(round_bytes * DAY_S / round_s)


def transfer_s(num_bytes: float, mbit_per_s: float) -> float:
    return num_bytes * 8 / (mbit_per_s * 1e6)


def recipe_round_bytes(recipe: Recipe) -> int:
    """Raises ValueError for an unknown family, strategy or adapter."""
    values = catalogue.offered_values(recipe)
    return round_bytes(values, recipe.round.codec, recipe.round.averaged_by)
