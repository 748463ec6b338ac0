"""Whose turn a round is: all members know it from the average before; newcomers from a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.swarm.progress import View, expected_group
from trainer.swarm.selection import Brought, in_force, next_chosen
from trainer.swarm.verdict import Verdict, short

if TYPE_CHECKING:
    from trainer.engine.loop import RoundLoop

NOT_OURS = "other devices were chosen for this round"


class Turn:
    def __init__(self, loop: RoundLoop) -> None:
        self._loop = loop
        self._chooses = loop.recipe.participation.chosen_by != "all"
        self._decided: tuple[int, tuple[str, ...]] | None = None
        self._brought = Brought()

    @property
    def chosen(self) -> tuple[str, ...] | None:
        """By `short` names; () everybody, None: not known."""
        decided = self._decided
        return decided[1] if decided and decided[0] == self._loop.learner.round else None

    @property
    def rests(self) -> bool:
        """Whether this device trains nothing in this round, and waits for its result."""
        me = self._loop.peer.peer_id
        is_coordinator = me in self._loop.peer.coordinators
        return bool(self.chosen) and not is_coordinator and short(me) not in (self.chosen or ())

    def look(self, view: View) -> None:
        """Takes the coordinator's word. Without it: when too few of those chosen are left, or bring
        nothing until the deadline, it is everybody's turn.
        """
        if not self._chooses:
            return
        loop, rested = self._loop, self.rests
        said = self._coordinators_word(view)
        if said is None and self.chosen and self._lapsed(view):
            said = ()
        if said is not None and said != self.chosen:
            self._decided = loop.learner.round, said
            loop.tracker.publish()
        if self.rests and not rested and loop.tally.tokens:
            loop.release(NOT_OURS)

    def _coordinators_word(self, view: View) -> tuple[str, ...] | None:
        loop = self._loop
        there = [name for name in sorted(view.abreast) if name in loop.peer.coordinators]
        said = [s.chosen for name in there if (s := view.abreast[name]).round == loop.learner.round]
        return next((chosen for chosen in said if chosen is not None), None)

    def _lapsed(self, view: View) -> bool:
        loop = self._loop
        least = loop.recipe.participation.least_members
        here = {*map(short, expected_group(view, loop.learner.round)), short(loop.peer.peer_id)}
        if len(here.intersection(self.chosen or ())) < least:
            return True
        return loop.timing.late_share(view) >= 1 and loop.timing.lacks_offers(view)

    def decide(self, verdict: Verdict) -> int | None:
        """Of a round that was applied: whose turn the next one is; how many trained by choice."""
        if not self._chooses:
            return None
        loop, known = self._loop, self._loop.peer.coordinators
        asked = in_force(verdict.notes, known)
        left_out = {*verdict.lost, *verdict.refused}
        brought = {
            short(name): 0 if name in left_out else note.samples
            for name, note in verdict.notes.items()
            if name not in known
        }
        self._brought.learn({name: brought.get(name, 0) for name in asked or brought})
        chosen = next_chosen(loop.recipe, verdict.round, verdict.notes, known)
        self._decided = verdict.round + 1, chosen
        return len(asked) or None

    def brought(self, group: set[str]) -> dict[str, float]:
        """For the note of a coordinator, by which all draw."""
        loop = self._loop
        is_asked = loop.recipe.participation.chosen_by == "speed"
        is_ours = loop.peer.peer_id in loop.peer.coordinators
        return self._brought.told(group) if is_asked and is_ours else {}
