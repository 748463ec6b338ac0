"""The words of `python -m trainer simulate`, and what they mean. Loads no torch."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from trainer import catalogue
from trainer.experiment import Experiment
from trainer.launcher.place import Unusable
from trainer.parts import first_problem
from trainer.simulator import liars
from trainer.simulator.clocks import Error
from trainer.simulator.files import find, make_toy, read_recipe
from trainer.simulator.links import KINDS, Link
from trainer.simulator.plan import Plan

MOST_PEERS = 500
DEFAULTS: dict[str, Any] = {
    "toy": False,
    "files": None,
    "peers": 8,
    "rounds": 20,
    "churn": 0.0,
    "links": "cable",
    "liars": "",
    "seed": 0,
}
WRITTEN = {
    "--links": f"KIND[:SHARE],… of {', '.join(KINDS)} or UP/DOWN/MS (Mbit/s, latency)",
    "--liars": f"KIND[:COUNT],… of {', '.join(liars.KINDS)} or clock=SECONDS[/PPM] (so wrong)",
}
Kind = TypeVar("Kind")


def read_plan(given: argparse.Namespace, folder: Path) -> Plan:
    """`folder` takes the toy's files. Raises Unusable."""
    peers = _between("--peers", given.peers, 1, MOST_PEERS)
    if bool(given.toy) == bool(given.recipe):
        raise Unusable("Give either a recipe file or --toy, which needs none.")
    if given.toy:
        recipe, files = make_toy(folder, peers)
    else:
        recipe = read_recipe(given.recipe)
        files = find(recipe, given.files or given.recipe.absolute().parent)
    counted = _counted("--liars", given.liars, _liar)
    if part := next((count for _, count in counted if count % 1), None):
        raise Unusable(f"--liars counts peers, and {part:g} is no whole number of them")
    odd = [kind for kind, count in counted for _ in range(int(count))]
    if len(odd) > peers:
        raise Unusable(f"--liars names {len(odd)} peers, and there are {peers}: raise --peers")
    rounds = _between("--rounds", given.rounds, 1, 100_000)
    return Plan(
        recipe,
        files,
        peers=peers,
        rounds=min(rounds, recipe.finish.rounds or rounds),  # after its last none begins
        leaves_per_minute=_between("--churn", given.churn, 0, 1000) / 100,
        links=tuple(_counted("--links", given.links, _link)) or Plan.links,
        liars=tuple(kind for kind in odd if isinstance(kind, str)),
        clock_errors=tuple(kind for kind in odd if isinstance(kind, Error)),
        seed=given.seed,
    )


def read_experiment(given: argparse.Namespace) -> Experiment | None:
    """None where no experiment was named; what else it is shows later. Raises Unusable."""
    try:
        content = json.loads(given.recipe.read_bytes()) if given.recipe else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or "strategies" not in content:
        return None
    changed = [f"--{name}" for name, usual in DEFAULTS.items() if getattr(given, name) != usual]
    if changed:
        raise Unusable(
            f"{given.recipe} is an experiment, which says all by itself: leave out "
            f"{', '.join(changed)}, and write it into the file."
        )
    try:
        experiment = Experiment.model_validate(content)
        for choice in experiment.strategies:
            catalogue.create("strategies", choice)
    except ValidationError as error:
        raise Unusable(f"{given.recipe} is no experiment: {first_problem(error)}") from error
    except ValueError as error:
        raise Unusable(f"{given.recipe} cannot be done here: {error}") from error
    return experiment


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(**DEFAULTS)
    parser.add_argument(
        "recipe", type=Path, nargs="?", help="JSON file of a recipe, or of an experiment"
    )
    parser.add_argument("--toy", action="store_true", help="a tiny model and text instead")
    parser.add_argument("--files", type=Path, help="folder of its files; by default the recipe's")
    parser.add_argument("--peers", type=int, help="default: 8, and a coordinator")
    parser.add_argument("--rounds", type=int, help="default: 20")
    parser.add_argument("--churn", type=float, help="%% of the peers that leave each minute")
    for option, written in WRITTEN.items():
        parser.add_argument(option, help=written)
    parser.add_argument("--seed", type=int, help="the same seed, the same run")


def _counted(option: str, text: str, read: Callable[[str], Kind]) -> list[tuple[Kind, float]]:
    """`a:2,b` as [(a, 2), (b, 1)]."""
    found = []
    for item in filter(None, text.split(",")):
        name, _, count = item.strip().partition(":")
        try:
            number = _number(count or "1", option)
            if not 0 < number <= MOST_PEERS:
                raise ValueError(f"{count} is not between 0 and {MOST_PEERS}")
            found.append((read(name), number))
        except ValueError as error:
            raise Unusable(f"{option} {item!r} makes no sense: {error}") from error
    return found


def _liar(name: str) -> str | Error:
    kind, _, wrong = name.partition("=")
    if kind == "clock":
        offset, _, ppm = wrong.partition("/")
        return Error(_number(offset, "--liars"), _number(ppm or "0", "--liars"))
    if name not in liars.KINDS:
        known = ", ".join(f"{n} ({kind.summary})" for n, kind in liars.KINDS.items())
        raise ValueError(f"there is no liar {name!r}; choose from {known}, clock=SECONDS")
    return name


def _link(text: str) -> Link:
    if text in KINDS:
        return KINDS[text]
    numbers = [_number(part, "--links") for part in text.split("/")] if "/" in text else []
    if len(numbers) != 3 or min(numbers) <= 0:
        raise ValueError(f"choose from {', '.join(KINDS)}, or write UP/DOWN/MS, such as 10/50/20")
    return Link(numbers[0], numbers[1], numbers[2] / 1000)


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number; write {WRITTEN[option]}") from None
    if not abs(value) <= 10**9:
        raise ValueError(f"{text} is out of range")
    return value


def _between(option: str, value: Any, least: float, most: float) -> Any:
    if not least <= value <= most:
        raise Unusable(f"{option} {value} makes no sense: it goes from {least} to {most}")
    return value
