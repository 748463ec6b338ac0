"""`python -m trainer simulate`: a line for each round, then the figures as one JSON document.

Of an experiment it is a line for each run, then a table and what follows from it; the figures are
in a file beside the experiment's, from the first run on.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from trainer.experiment import Experiment
from trainer.simulator.lab import Lab
from trainer.simulator.ledger import Attempt
from trainer.simulator.options import read_experiment, read_plan
from trainer.simulator.run import Rehearsal

HEAD = f"{'round':>6} {'outcome':<8} {'members':>7} {'samples':>8} {'loss':>9} {'seconds':>9}"
TABLE = f"{'strategy':<24} {'loss':>7} {'±':>6} {'worst':>7} {'spread':>7} {'MB sent':>8} {'s':>7}"
RESULT = ".result.json"


def simulate(given: argparse.Namespace) -> int:
    """0 when the rounds asked for were reached. Raises Unusable on words that make no sense."""
    torch.set_num_threads(1)  # many tiny models; and sums in one fixed order
    with _errors_only():
        if experiment := read_experiment(given):
            return _compare(experiment, given.recipe.with_suffix(RESULT))
        return _rehearse(given)


@contextmanager
def _errors_only() -> Iterator[None]:
    """What the made-up peers say of themselves would hide the figures."""
    log = logging.getLogger("trainer")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _rehearse(given: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        plan = read_plan(given, Path(folder))
        print(HEAD, flush=True)
        figures = Rehearsal(plan, lambda attempt: print(_line(attempt), flush=True)).run()
    print(json.dumps(figures), flush=True)
    return 0 if figures["reached"] else 1


def _line(attempt: Attempt) -> str:
    loss = "" if attempt.loss is None else f"{attempt.loss:.4f}"
    lost = f"  lost: {', '.join(attempt.lost)}" if attempt.lost else ""
    return (
        f"{attempt.round:>6} {attempt.outcome:<8} {attempt.members:>7} {attempt.samples:>8} "
        f"{loss:>9} {attempt.at_s:>9.1f}{lost}"
    )


def _compare(experiment: Experiment, file: Path) -> int:
    """0 when every run reached its last round."""
    num_shown = 0

    def show(result: dict[str, Any]) -> None:
        nonlocal num_shown
        _write(file, result)
        for run in result["runs"][num_shown:]:
            loss = "no number" if run["loss"] is None else f"{run['loss']:.4f}"
            print(f"{run['name']}, seed {run['seed']}: held-out loss {loss}", flush=True)
        num_shown = len(result["runs"])

    result = Lab(experiment, show).run()
    _write(file, result)
    print("", TABLE, *map(_row, result["summary"]), "", result["conclusion"], sep="\n")
    print(f"All figures are in {file}")
    return 0 if all(run["reached"] for run in result["runs"]) else 1


def _write(file: Path, result: dict[str, Any]) -> None:
    """Whoever reads it meanwhile gets the one before."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(json.dumps(result, allow_nan=False))
    new.replace(file)


def _row(row: dict[str, Any]) -> str:
    def cell(value: float | None, width: int, form: str, scale: float = 1.0) -> str:
        return f"{'-' if value is None else format(value / scale, form):>{width}}"

    return (
        f"{row['name']:<24} {cell(row['loss'], 7, '.3f')} {cell(row['loss_spread'], 6, '.3f')} "
        f"{cell(row['worst'], 7, '.3f')} {cell(row['spread'], 7, '.3f')} "
        f"{cell(row['bytes_sent'], 8, '.1f', 1e6)} {cell(row['simulated_s'], 7, '.0f')}"
    )
