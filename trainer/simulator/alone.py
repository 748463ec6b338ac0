"""What strategies are compared with: each volunteer alone, and all texts on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trainer.engine.learner import Learner
from trainer.engine.texts import training_batches
from trainer.families.base import Batch
from trainer.recipe import Recipe
from trainer.text.tokenizer import Tokenizer

LOOKS = 15  # at each volunteer's model; those at the one of all texts are as many as rounds


class Alone:
    """One learner that never averages; `recipe` has a strategy with local steps."""

    def __init__(self, recipe: Recipe, text: Path, tokenizer: Tokenizer, seed: str) -> None:
        self.learner = Learner(recipe, tokenizer.pad)
        objective = self.learner.family.objective
        self._batches = training_batches(recipe, (text,), tokenizer, objective, seed)

    def train(self, steps: int) -> None:
        """A micro-batch that is not finite changes nothing, as in a round."""
        for batch in _first(self._batches, steps):
            self.learner.learn(batch)


def _first(batches: Iterator[Batch], count: int) -> Iterator[Batch]:
    return (next(batches) for _ in range(count))


def train_alone(
    learners: Sequence[Alone],
    steps: int,
    rounds: int,
    held_out: Sequence[Batch],
    tell: Callable[[], None],
) -> list[tuple[int, float]]:
    """`steps` micro-batches of each in what would be a round; the mean loss at some of these ends.

    `tell` is called after each of them.
    """
    every = max(1, rounds // LOOKS) if len(learners) > 1 else 1
    curve = []
    for number in range(rounds):
        for one in learners:
            one.train(steps)
        if (number + 1) % every == 0 or number == rounds - 1:
            losses = [one.learner.evaluate(held_out)[0] for one in learners]
            curve.append((number, sum(losses) / len(losses)))
        tell()
    return curve
