"""A checkpoint measured with parts of the held-out text, on a device too small to train it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from trainer.data.batches import batches
from trainer.data.mixture import open_source
from trainer.engine import checkpoint
from trainer.engine.model import build, measure, trainable
from trainer.families.base import Batch
from trainer.planner.ways import is_streamable
from trainer.recipe import Recipe
from trainer.text.tokenizer import Tokenizer

MOST_SAMPLES = 64  # of a part


class Evaluator:
    """Holds the parameters alone: no gradient, no optimizer, and nothing of a frozen base."""

    def __init__(
        self, recipe: Recipe, tokenizer: Tokenizer, held_out: Path | None, base: Path | None
    ) -> None:
        """`held_out`: its file, None where it is read from its address. Raises as `build`."""
        self._recipe, self._tokenizer, self._held_out = recipe, tokenizer, held_out
        streams = is_streamable(recipe)
        self._family, self._model = build(recipe, tokenizer.pad, base, streams=streams)
        self._model.eval()

    def measure(self, path: Path, part: int, num_parts: int) -> tuple[float, int]:
        """Sum of the losses of the target tokens in the part, and their number.

        The same on every device, whatever its memory. Raises BadCheckpoint and SourceUnavailable.
        """
        checkpoint.fill(path, dict(trainable(self._model)), self._recipe.sha256())
        return measure(self._family, self._model, self._batches(part, num_parts))

    def _batches(self, part: int, num_parts: int) -> Iterator[Batch]:
        """One sequence each."""
        recipe = self._recipe
        assert recipe.held_out is not None, "only recipes with one are evaluated"
        pieces = open_source(recipe.held_out, self._held_out).shard(
            part, num_parts, str(recipe.seed)
        )
        found = batches(
            (piece.document for piece in pieces),
            self._tokenizer,
            self._family.objective,
            length=recipe.sequence_length,
            size=lambda: 1,
            seed=recipe.seed + part,
        )
        return islice(found, MOST_SAMPLES)
