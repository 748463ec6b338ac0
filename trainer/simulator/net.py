"""The simulated net: who is there, over which link, and what all of them share."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from trainer.simulator.board import Board
from trainer.simulator.clocks import Timekeeper
from trainer.simulator.events import Events
from trainer.simulator.links import Link

if TYPE_CHECKING:
    from trainer.simulator.meeting import Meeting

State = tuple[dict[str, int], list[Tensor]]


@dataclass
class Place:
    """One peer that is there now. `shared_round`: of the state it gives to newcomers."""

    link: Link
    timekeeper: Timekeeper
    state_source: Callable[[], State] | None = None
    shared_round: int | None = None


class Net:
    """`links` also has those of peers that are gone."""

    def __init__(self, events: Events, rng: random.Random) -> None:
        self.events, self.rng = events, rng
        self.board = Board()
        self.places: dict[str, Place] = {}
        self.links: dict[str, Link] = {}
        self.meetings: list[Meeting] = []
        self.seen: Callable[[Meeting], None] = lambda meeting: None

    def enter(self, name: str, link: Link, timekeeper: Timekeeper) -> Place:
        self.links[name] = link
        self.places[name] = Place(link, timekeeper)
        return self.places[name]

    def leave(self, name: str) -> None:
        """However it leaves: nobody reaches it any more."""
        self.places.pop(name, None)
        for meeting in list(self.meetings):
            meeting.lose(name)

    def answers(self, name: str) -> bool:
        return name in self.places
