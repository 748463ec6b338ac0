"""Whose turn it is to train in a round: by the notes of the average before it. Pure.

All members of an average have the same notes, so all draw the same lots for the next round, whether
or not the coordinator is among them. A name's lot is u in (0, 1), made of the recipe's seed, the
round and the name; chosen are those with the largest u^(1/w), which is a draw in proportion to the
weights w (Efraimidis and Spirakis 2006). w is 1 or, by `speed`, what the device brought of late, as
the coordinator's note says. Who was not in that average is not chosen, and reads the list in the
coordinator's record.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from math import log

from trainer.recipe import Recipe
from trainer.swarm.verdict import MOST_BROUGHT, Note, short

LEAST_WEIGHT = 0.05  # so that a device that was slow or away is tried again now and then
REMEMBERED = 0.7  # of what was known, when a round adds to it


def draw(
    recipe: Recipe, round_number: int, names: Collection[str], brought: Mapping[str, float]
) -> tuple[str, ...]:
    """The `short` names of those chosen, in order; `brought` is by short names, too."""

    def lot(name: str) -> float:
        seed = f"{recipe.seed}/{round_number}/{name}".encode()
        u = (int.from_bytes(hashlib.sha256(seed).digest()[:8]) + 1) / (2**64 + 2)
        return log(u) / max(brought.get(short(name), 1.0), LEAST_WEIGHT)

    count = recipe.participation.number_chosen(len(names))
    best = sorted(names, key=lambda name: (-lot(name), name))[:count]
    return tuple(sorted(map(short, best)))


def next_chosen(
    recipe: Recipe, round_number: int, notes: Mapping[str, Note], known: Collection[str]
) -> tuple[str, ...]:
    """For the round after the one these notes are of; `known` are the coordinators."""
    brought: Mapping[str, float] = {}
    if recipe.participation.chosen_by == "speed":
        told = [note.brought for name, note in sorted(notes.items()) if name in known]
        brought = told[0] if told else {}
    return draw(recipe, round_number + 1, notes.keys() - set(known), brought)


def in_force(notes: Mapping[str, Note], known: Collection[str]) -> tuple[str, ...]:
    """Who may train in the round of these notes; () where everybody may.

    The coordinator's list; without one, that of more than half of the members.
    """
    said = {name: note.chosen for name, note in notes.items() if note.chosen is not None}
    first = [chosen for name, chosen in sorted(said.items()) if name in known]
    if first:
        return first[0]
    chosen, count = Counter(said.values()).most_common(1)[0] if said else ((), 0)
    return chosen if 2 * count > len(notes.keys() - set(known)) else ()


class Brought:
    """Samples that each device had in the averages of the rounds it was chosen for, against the
    mean of those chosen with it: 1 is as much, 0 means that it did not come. Newer rounds count
    more; of a device that nothing is known of, it is 1.
    """

    def __init__(self) -> None:
        self._of: dict[str, float] = {}

    def learn(self, samples: Mapping[str, int]) -> None:
        """Of a round: by `short` names, 0 for those who were chosen and brought nothing."""
        mean = sum(samples.values()) / max(len(samples), 1)
        for name, count in samples.items() if mean else ():
            known = self._of.get(name, 1.0)
            self._of[name] = REMEMBERED * known + (1 - REMEMBERED) * count / mean

    def told(self, names: Collection[str]) -> dict[str, float]:
        """Of these peers, as a note holds it: of those that differ most from 1."""
        found = {short(name): self._of[short(name)] for name in names if short(name) in self._of}
        most = sorted(found, key=lambda name: (-abs(found[name] - 1), name))[:MOST_BROUGHT]
        return {name: round(found[name], 3) for name in most}
