"""What is to be rehearsed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainer.recipe import Recipe
from trainer.simulator.clocks import Error
from trainer.simulator.files import Files
from trainer.simulator.links import KINDS, Link


@dataclass(frozen=True)
class Plan:
    """`links` with their share of the peers; `liars` and `clock_errors`, one for each such peer.

    `leaves_per_minute` is a share of the peers; `samples_per_s` is the
    middle peer's; None: one micro-batch a second, which is what the agent aims at. `slow` peers are
    ten times slower. With `shares` each has a text of its own, newcomers those of the first again.
    """

    recipe: Recipe
    files: Files
    peers: int = 8
    rounds: int = 20
    leaves_per_minute: float = 0.0
    links: tuple[tuple[Link, float], ...] = ((KINDS["cable"], 1.0),)
    liars: tuple[str, ...] = ()
    clock_errors: tuple[Error, ...] = ()
    samples_per_s: float | None = None
    slow: int = 0
    shares: tuple[Path, ...] = ()
    seed: int = 0
    longest_s: float = 7200.0
