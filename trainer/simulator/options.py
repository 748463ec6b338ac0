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
    counted = _counted("--liars", given.liars, _liar)
    odd = [kind for kind, count in counted for _ in range(int(count))]
    if len(odd) > peers:
        raise Unusable(f"--liars names {len(odd)} peers, and there are {peers}: raise --peers")
    return Plan(
        recipe,
        files,
        peers=peers,
        rounds=_between("--rounds", given.rounds, 1, 100_000),
        leaves_per_minute=_between("--churn", given.churn, 0, 1000) / 100,
        links=tuple(_counted("--links", given.links, _link)) or Plan.links,
        liars=tuple(kind for kind in odd if isinstance(kind, str)),
        clock_errors=tuple(kind for kind in odd if isinstance(kind, Error)),
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
    parser.add_argument(
        "--liars",
        default="",
        help=f"KIND[:COUNT],… of {', '.join(liars.KINDS)} or clock=SECONDS[/PPM] (so wrong)",
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


def _liar(name: str) -> str | Error:
    kind, _, wrong = name.partition("=")
    if kind == "clock":
        offset, _, ppm = wrong.partition("/")
        return Error(_number(offset), _number(ppm or "0"))
    if name not in liars.KINDS:
        known = ", ".join(f"{n} ({kind.summary})" for n, kind in liars.KINDS.items())
        raise ValueError(f"there is no liar {name!r}; choose from {known}, clock=SECONDS")
    return name


def _link(text: str) -> Link:
    if text in KINDS:
        return KINDS[text]
    numbers = [_number(part) for part in text.split("/")] if "/" in text else []
    if len(numbers) != 3 or min(numbers) <= 0:
        raise ValueError(f"choose from {', '.join(KINDS)}, or write UP/DOWN/MS, such as 10/50/20")
    return Link(numbers[0], numbers[1], numbers[2] / 1000)


def _number(text: str) -> float:
    value = float(text)
    if not abs(value) <= 10**9:
        raise ValueError(f"{text} is out of range")
    return value


def _between(option: str, value: Any, least: float, most: float) -> Any:
    if not least <= value <= most:
        raise Unusable(f"{option} {value} makes no sense: it goes from {least} to {most}")
    return value
