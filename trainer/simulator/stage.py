"""One seed of an experiment: texts, who has which, and what comes of them together or alone."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import NamedTuple

from trainer import catalogue
from trainer.engine.learner import Learner
from trainer.engine.texts import ROWS, held_out_batches
from trainer.experiment import Experiment
from trainer.families.base import CAUSAL, Batch
from trainer.recipe import Choice, Recipe
from trainer.simulator.alone import Alone, train_alone
from trainer.simulator.findings import CENTRALISED, LOCAL_ONLY, Curve, Run
from trainer.simulator.ledger import Attempt
from trainer.simulator.life import HELD_OUT_SAMPLES
from trainer.simulator.plan import Plan
from trainer.simulator.run import Rehearsal
from trainer.simulator.splits import split
from trainer.simulator.topics import Task, write
from trainer.text.tokenizer import Tokenizer
from trainer.wire import Outcome

LONGEST_ROUND_S = 180.0
DONE = (Outcome.CLEAN, Outcome.ALONE, Outcome.UNDONE)
ALL = 10**6  # samples: as many as there are
SGD: dict[str, int | float | str | bool] = {"local_optimizer": "sgd"}


class Fit(NamedTuple):
    """How well one or several models fit: the mean loss of all topics and, over the volunteers,
    each by its own mixture of topics, the highest, the standard deviation and the mean. None: no
    numbers."""

    loss: float | None
    worst: float | None
    spread: float | None
    own: float | None


class Stage:
    """`folder` takes what each volunteer has."""

    def __init__(
        self,
        experiment: Experiment,
        task: Task,
        folder: Path,
        seed: int,
        round_done: Callable[[], None],
    ) -> None:
        self._experiment, self._task = experiment, task
        self._seed, self._round_done = seed, round_done
        rng = random.Random(f"{seed}/split")  # noqa: S311 - a made-up split, not a secret
        self._shares = split(task.labels, experiment, rng)
        self._texts = tuple(folder / f"share-{n:02}.txt" for n in range(len(self._shares)))
        for path, share in zip(self._texts, self._shares, strict=True):
            write(path, [task.documents[number] for number in share])
        self._tokenizer = Tokenizer(task.files.tokenizer, task.recipe.tokenizer.vocab_size)
        self._looks = self._held_out(task.files.held_out, HELD_OUT_SAMPLES)
        self._by_topic = [self._held_out(path, ALL) for path in task.held_out]

    def topics_of_each(self) -> list[list[int]]:
        """How many documents of each topic each volunteer has."""
        labels = self._task.labels
        topics = [[labels[number] for number in share] for share in self._shares]
        return [[own.count(n) for n in range(len(self._task.held_out))] for own in topics]

    # ------------------------------------------------------------ runs
    def together(self, name: str, choice: Choice) -> Run:
        """In the real rounds, with people who are equally fast whatever the strategy."""
        experiment, recipe = self._experiment, self._recipe(choice)
        plan = Plan(
            recipe,
            self._task.files,
            peers=experiment.volunteers,
            rounds=experiment.rounds,
            slow=round(experiment.volunteers * experiment.slow_percent / 100),
            shares=self._texts,
            seed=self._seed,
            longest_s=LONGEST_ROUND_S * experiment.rounds,
        )
        curve: dict[int, float] = {}

        def look(attempt: Attempt) -> None:
            """At the model that the round has led to."""
            if attempt.outcome in DONE:
                learner = rehearsal.coordinator.learner
                curve[attempt.round] = learner.evaluate(self._looks)[0]
                self._round_done()

        rehearsal = Rehearsal(plan, look)
        figures = rehearsal.run()
        model = rehearsal.coordinator.learner
        fit = self._fit([model] * experiment.volunteers)
        return Run(
            name=name,
            seed=self._seed,
            curve=finite(sorted(curve.items())),
            **fit._asdict(),
            reached=figures["reached"],
            simulated_s=figures["simulated_s"],
            bytes_sent=figures["bytes_sent"],
            released_samples=figures["samples"]["released"],
        )

    def local_only(self) -> Run:
        """Each volunteer's model learns from as many samples as an even part of the rounds has."""
        alone = [self._alone(text, str(n)) for n, text in enumerate(self._texts)]
        return self._compared(LOCAL_ONLY, alone, self._steps_each())

    def centralised(self) -> Run:
        """One model learns, one micro-batch after another, from as many samples as all rounds."""
        steps = self._steps_each() * self._experiment.volunteers
        return self._compared(CENTRALISED, [self._alone(self._task.files.texts[0], "all")], steps)

    def _compared(self, name: str, alone: Sequence[Alone], steps: int) -> Run:
        rounds = self._experiment.rounds
        curve = train_alone(alone, steps, rounds, self._looks, self._round_done)
        models = [one.learner for one in alone]
        everybody = models if len(models) > 1 else models * self._experiment.volunteers
        return Run(name, self._seed, finite(curve), **self._fit(everybody)._asdict())

    def _steps_each(self) -> int:
        recipe = self._task.recipe
        batches = recipe.round.target_samples / (recipe.micro_batch or ROWS)
        return round(batches / self._experiment.volunteers)

    def _alone(self, text: Path, who: str) -> Alone:
        recipe = self._recipe(Choice(name="fedavg"))
        return Alone(recipe, text, self._tokenizer, f"{self._seed}/{who}")

    # ------------------------------------------------------------ parts
    def _recipe(self, choice: Choice) -> Recipe:
        """With the learning rate that suits the steps of the strategy."""
        options = catalogue.plugins("strategies")[choice.name].Params.model_fields
        if self._experiment.same_steps and "local_optimizer" in options:
            choice = choice.model_copy(update={"params": {**SGD, **choice.params}})
        strategy = catalogue.create("strategies", choice)
        recipe, rate = self._task.recipe, self._task.rates[strategy.optimizer]
        optimizer = recipe.optimizer.model_copy(update={"learning_rate": rate})
        return recipe.model_copy(update={"strategy": choice, "optimizer": optimizer})

    def _held_out(self, path: Path | None, samples: int) -> list[Batch]:
        assert path is not None, "the texts of an experiment always have held-out ones"
        recipe = self._task.recipe
        return held_out_batches(recipe, path, self._tokenizer, CAUSAL, samples)

    def _fit(self, models: Sequence[Learner]) -> Fit:
        """`models` are the volunteers', perhaps one and the same."""
        known: dict[int, list[float]] = {}
        for model in models:
            if id(model) not in known:
                known[id(model)] = [model.evaluate(batches)[0] for batches in self._by_topic]
        by_topic = [known[id(model)] for model in models]
        own = [
            sum(loss * count for loss, count in zip(losses, counts, strict=True)) / sum(counts)
            for losses, counts in zip(by_topic, self.topics_of_each(), strict=True)
        ]
        if not all(map(math.isfinite, own)):
            return Fit(None, None, None, None)
        return Fit(fmean(map(fmean, by_topic)), max(own), pstdev(own), fmean(own))


def finite(curve: Sequence[tuple[int, float]]) -> Curve:
    """Without what is no number."""
    return [(number, loss) for number, loss in curve if math.isfinite(loss)]
