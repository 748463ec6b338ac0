"""When a round is due: target reached, deadline passed, nothing more to do, or others end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.engine.turn import NOT_OURS
from trainer.swarm import clock
from trainer.swarm.deadline import Deadline
from trainer.swarm.progress import Stage, Standing, View, expected_group

if TYPE_CHECKING:
    from trainer.engine.loop import RoundLoop

NEARLY = 0.7  # of the target or the deadline: then a peer that is ready is followed
MEETING_S = 30.0  # a newcomer ends no round before it has seen a coordinator, or for so long
COORDINATOR_AWAY = (
    "the coordinator, which alone averages here, is away; what this device learned is kept for it"
)


class Timing:
    def __init__(self, loop: RoundLoop) -> None:
        self._loop = loop
        self._met = not loop.peer.coordinators
        self._began = clock.monotonic()
        self.deadline = Deadline(loop.recipe.round.deadline_s)

    def due(self, view: View, finishing: bool) -> bool:
        loop = self._loop
        abreast = expected_group(view, loop.learner.round)
        samples = loop.swarm_samples()
        if self.over() or samples <= 0 or not self._has_met(view) or self.lacks_coordinator(view):
            return False
        if not abreast and (view.present or view.is_old):
            return False
        done = max(samples / loop.recipe.round.target_samples, self.late_share(view))
        ready = {name for name in abreast if view.abreast[name].stage is Stage.READY}
        called = bool(ready & loop.peer.coordinators)
        if self.lacks_offers(view):
            return called
        called = called or (done >= NEARLY and bool(ready))
        enough = done >= 1 or called or self._all_full(view, abreast, bool(ready))
        return enough or self.enough_done(view) or (finishing and loop.tally.tokens > 0)

    def over(self) -> str:
        """Why no round begins any more; "" while one does.

        The recipe says so, hence all members know it, whether or not they hear from the site.
        """
        most, number = self._loop.recipe.finish.rounds, self._loop.learner.round
        if not 0 < most <= number:
            return ""
        return f"round {number} of {most} is done; waiting for the site to end the collaboration"

    def lacks_coordinator(self, view: View) -> bool:
        """Whether it alone averages and is not in this round: then no round can end."""
        loop = self._loop
        present = loop.peer.coordinators & expected_group(view, loop.learner.round)
        return loop.recipe.round.averaged_by == "coordinator" and not present

    def lacks_offers(self, view: View) -> bool:
        """Whether fewer devices have something to offer than a round needs."""
        offers = sum(standing.samples > 0 for standing in self._volunteers(view))
        own = self._loop.tally.samples > 0
        return offers + own < self._loop.recipe.participation.least_members

    def enough_done(self, view: View) -> bool:
        """Whether as many are done as end a round; the others then hand in what they have."""
        loop, rules = self._loop, self._loop.recipe.participation
        if rules.done_share == 1:
            return False
        others = self._volunteers(view)
        done = sum(s.samples > 0 and s.stage is not Stage.TRAINING for s in others)
        done += loop.tally.samples > 0 and loop.stage is not Stage.TRAINING
        count = len(loop.turn.chosen or ()) or len(others) + self._trains
        return done >= rules.number_done(count)

    def missing(self, view: View) -> str:
        """What a round waits for; "" while all that it needs are there, whatever they have yet."""
        least = self._loop.recipe.participation.least_members
        absent = least - len(self._volunteers(view)) - self._trains
        if absent <= 0:
            return ""
        more = "1 more device" if absent == 1 else f"{absent} more devices"
        return f"waiting for {more}: a round needs {least}"

    @property
    def _trains(self) -> bool:
        return self._loop.peer.peer_id not in self._loop.peer.coordinators

    def _volunteers(self, view: View) -> list[Standing]:
        """The records of others that train, or will, in this round."""
        names = expected_group(view, self._loop.learner.round) - self._loop.peer.coordinators
        return [view.abreast[name] for name in names]

    def trouble(self, view: View) -> str:
        """Why what it learns may have to wait; "" when all is well."""
        if over := self.over():
            return over
        if self.lacks_coordinator(view):
            return COORDINATOR_AWAY
        return self.missing(view)

    def enough(self) -> str:
        """Why it takes no more micro-batches in this round; "" when it does."""
        if self._loop.turn.rests:
            return f"{NOT_OURS}; this one takes the result"
        if full := self.full():
            return f"{full}; waiting for the others"
        if self._loop.tally.samples >= self._loop.recipe.round.enough_samples():
            return "it has enough samples for this round"
        return ""

    def full(self) -> str:
        """Why this peer may take no more local steps in this round; "" when it may."""
        learner, computed_s = self._loop.learner, self._loop.tally.compute_s
        if over := self.over():
            return over
        if self._loop.tally.late:
            return "hands in what it had for an earlier round"
        if learner.full:
            return f"took its {learner.context.steps} local steps"
        if 0 < learner.strategy.most_s <= computed_s:
            return f"trained for {computed_s:.0f} s"
        own = self._loop.own_samples
        if 0 < learner.strategy.most_passes * own <= self._loop.tally.samples:
            return f"went {learner.strategy.most_passes:g} times through its own {own:,} samples"
        return ""

    def _all_full(self, view: View, abreast: set[str], follow: bool) -> bool:
        """Whether nobody of this round may take another local step, as far as we or others see."""
        training = abreast - self._loop.peer.coordinators
        others = all(view.abreast[name].stage is not Stage.TRAINING for name in training)
        return self._loop.stage is Stage.FULL and (others or follow)

    def _has_met(self, view: View) -> bool:
        """Whether we are past the first moments, in which others may be there and not yet seen."""
        late = clock.monotonic() - self._began > MEETING_S
        self._met = self._met or view.coordinators > 0 or late
        return self._met

    def late_share(self, view: View) -> float:
        """How much of the deadline is over."""
        others = view.deadlines() if view.round == self._loop.learner.round else []
        return self.round_age(view) / self.deadline.seconds(others)

    def round_age(self, view: View) -> float:
        """Seconds since this round began, for us or by the middle of the others."""
        own = self._loop.tally.started
        began = view.started() if view.round == self._loop.learner.round else None
        return clock.now() - min(own, began or own)
