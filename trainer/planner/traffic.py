"""What an average sends and receives."""

from __future__ import annotations

from trainer.recipe import CODEC_BYTES, Recipe

# What an average of one vector makes a device send and receive at most, in vectors: its own out and
# the mean back in, and as much again for its part of the averaging, where devices share equally.
VECTORS = {"peers": 4, "coordinator": 2}
DAY_S = 86_400


def round_bytes(
    parameters: float, codec: str = "fp32", averaged_by: str = "peers", offered: int = 1
) -> int:
    """Sent and received by a device in one round, where an offer is `offered` vectors."""
    return round(VECTORS[averaged_by] * offered * CODEC_BYTES[codec] * parameters)


def day_bytes(round_bytes: float, round_s: float) -> int:
    """Where a round takes `round_s`."""
    return round(round_bytes * DAY_S / round_s)


def transfer_s(num_bytes: float, mbit_per_s: float) -> float:
    return num_bytes * 8 / (mbit_per_s * 1e6)


def recipe_round_bytes(recipe: Recipe, parameters: int, offered: int) -> int:
    return round_bytes(parameters, recipe.round.codec, recipe.round.averaged_by, offered)
