"""An experiment from its first run to its result: the same texts and people for every strategy."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from trainer import catalogue
from trainer.experiment import Experiment
from trainer.recipe import Choice
from trainer.simulator.findings import CENTRALISED, LOCAL_ONLY, Run, conclusion, summary
from trainer.simulator.stage import Stage
from trainer.simulator.topics import make_task

OFTEN_S = 1.0


class Lab:
    """`show` gets the result as far as it is known, after each run and now and then."""

    def __init__(self, experiment: Experiment, show: Callable[[dict[str, Any]], None]) -> None:
        self.experiment, self._show = experiment, show
        self.choices = dict(zip(names_of(experiment), experiment.strategies, strict=True))
        self._runs: list[Run] = []
        self._topics_of_each: list[list[int]] = []
        self._rounds_done, self._doing, self._shown_at = 0, "", 0.0

    def run(self) -> dict[str, Any]:
        """The complete result."""
        for seed in self.experiment.every_seed():
            with tempfile.TemporaryDirectory(prefix="experiment-") as folder:
                task = make_task(Path(folder), self.experiment, seed)
                stage = Stage(self.experiment, task, Path(folder), seed, self._round_done)
                self._topics_of_each = self._topics_of_each or stage.topics_of_each()
                for name, act in self._acts(stage):
                    self._doing = f"{name}, seed {seed}"
                    self._runs.append(act())
                    self._rounds_done = len(self._runs) * self.experiment.rounds
                    self._show(self.result())
        return self.result()

    def _acts(self, stage: Stage) -> list[tuple[str, Callable[[], Run]]]:
        acts: list[tuple[str, Callable[[], Run]]] = [
            (name, partial(stage.together, name, choice)) for name, choice in self.choices.items()
        ]
        if self.experiment.baselines:
            acts += [(LOCAL_ONLY, stage.local_only), (CENTRALISED, stage.centralised)]
        return acts

    def _round_done(self) -> None:
        self._rounds_done += 1
        if time.monotonic() - self._shown_at >= OFTEN_S:
            self._shown_at = time.monotonic()
            self._show(self.result())

    def result(self) -> dict[str, Any]:
        """`complete` says whether that is all; equal experiments then have equal ones."""
        experiment, names = self.experiment, list(self.choices)
        complete = len(self._runs) == experiment.num_runs
        return {
            "format": "result-1",
            "experiment": experiment.model_dump(mode="json"),
            "complete": complete,
            "doing": "" if complete else self._doing,
            "rounds_done": self._rounds_done,
            "num_rounds": experiment.num_runs * experiment.rounds,
            "topics_of_each": self._topics_of_each,
            "summary": summary(self._runs, [*names, LOCAL_ONLY, CENTRALISED]),
            "conclusion": conclusion(experiment, self._runs, names) if complete else "",
            "runs": [asdict(run) for run in self._runs],
        }


def names_of(experiment: Experiment) -> list[str]:
    """Of the strategies in it, as people know them; one that comes twice is told apart by its
    parameters. Raises ValueError for one that is none.
    """
    strategies = [catalogue.create("strategies", choice) for choice in experiment.strategies]
    names = [strategy.label.partition(" (")[0] for strategy in strategies]
    return [
        name if names.count(name) == 1 else f"{name} {_in_words(choice)}"
        for name, choice in zip(names, experiment.strategies, strict=True)
    ]


def _in_words(choice: Choice) -> str:
    return ", ".join(f"{key}={value}" for key, value in choice.params.items()) or "by default"
