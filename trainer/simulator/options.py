"""The words of `python -m trainer simulate`, and what they mean. Loads no torch."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from trainer.launcher.place import Unusable
from trainer.simulator import liars
from trainer.simulator.clocks import Error
from trainer.simulator.files import find, make_toy, read_recipe
from trainer.simulator.links import KINDS, Link
from trainer.simulator.plan import Plan

MOST_PEERS = 500
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
    lies = _counted("--liars", given.liars, _liar)
    named = [kind for kind, count in lies for _ in range(int(count))]
    wrong = _counted("--clocks", given.clocks, _error)
    errors = [error for error, count in wrong for _ in range(int(count))]
    if len(named) + len(errors) > peers:
        raise Unusable(
            f"--liars and --clocks name {len(named) + len(errors)} peers, and there are {peers}: "
            "raise --peers"
        )
    return Plan(
        recipe,
        files,
        peers=peers,
        rounds=_between("--rounds", given.rounds, 1, 100_000),
        leaves_per_minute=_between("--churn", given.churn, 0, 1000) / 100,
        links=tuple(_counted("--links", given.links, _link)) or Plan.links,
        liars=tuple(named),
        clock_errors=tuple(errors),
        samples_per_s=given.speed and _between("--speed", given.speed, 0.001, 10**6),
        seed=given.seed,
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", type=Path, nargs="?", help="JSON file of a recipe")
    parser.add_argument("--toy", action="store_true", help="a tiny model and text instead")
    parser.add_argument(
        "--files", type=Path, default=None, help="folder of its files; default: beside the recipe"
    )
    parser.add_argument("--peers", type=int, default=8, help="default: 8, and a coordinator")
    parser.add_argument("--rounds", type=int, default=20, help="default: 20")
    parser.add_argument(
        "--churn", type=float, default=0.0, help="%% of the peers that leave each minute"
    )
    parser.add_argument(
        "--links",
        default="cable",
        help=f"KIND[:SHARE],… of {', '.join(KINDS)} or UP/DOWN/MS (Mbit/s, latency)",
    )
    parser.add_argument("--liars", default="", help=f"KIND[:COUNT],… of {', '.join(liars.KINDS)}")
    parser.add_argument(
        "--clocks", default="", help="SECONDS[/PPM][:COUNT],…: clocks that stay so wrong"
    )
    parser.add_argument(
        "--speed", type=float, default=None, help="samples/s; default: a micro-batch a second"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed, the same run")


def _counted(option: str, text: str, read: Callable[[str], Kind]) -> list[tuple[Kind, float]]:
    """`a:2,b` as [(a, 2), (b, 1)]."""
    found = []
    for item in filter(None, text.split(",")):
        name, _, count = item.strip().partition(":")
        try:
            number = float(count or 1)
            if not 0 < number <= MOST_PEERS:
                raise ValueError(f"{count} is not between 0 and {MOST_PEERS}")
            found.append((read(name), number))
        except ValueError as error:
            raise Unusable(f"{option} {item!r} makes no sense: {error}") from error
    return found


def _liar(name: str) -> str:
    if name not in liars.KINDS:
        known = ", ".join(f"{n} ({kind.summary})" for n, kind in liars.KINDS.items())
        raise ValueError(f"there is no liar {name!r}; choose from {known}")
    return name


def _link(text: str) -> Link:
    if text in KINDS:
        return KINDS[text]
    numbers = [float(part) for part in text.split("/")] if "/" in text else []
    if len(numbers) != 3 or min(numbers) <= 0:
        raise ValueError(f"choose from {', '.join(KINDS)}, or write UP/DOWN/MS, such as 10/50/20")
    return Link(numbers[0], numbers[1], numbers[2] / 1000)


def _error(text: str) -> Error:
    offset, _, ppm = text.partition("/")
    return Error(float(offset), float(ppm or 0))


def _between(option: str, value: Any, least: float, most: float) -> Any:
    if not least <= value <= most:
        raise Unusable(f"{option} {value} makes no sense: it goes from {least} to {most}")
    return value
