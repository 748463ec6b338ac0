"""Taking the swarm's current state from a peer when the swarm is in another round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.engine.late import hand_in, set_aside
from trainer.swarm import clock
from trainer.swarm.progress import Stage, View
from trainer.wire import Activity, Wish

if TYPE_CHECKING:
    from trainer.engine.loop import RoundLoop

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
DOWNLOAD_S = 600.0
PATIENCE_S = 15.0  # ahead of everybody for so long: it is not them who are late


class CatchUp:
    def __init__(self, loop: RoundLoop) -> None:
        self._loop = loop
        self._ahead_since: float | None = None

    def needed(self, view: View) -> bool:
        """Behind the swarm, or ahead of it for longer than its records can be late.

        Nobody downloads at round 0: there is nothing yet that all do not have.
        """
        own = self._loop.learner.round
        if not view.round or view.round == own:
            self._ahead_since = None
            return False
        if view.round > own:
            return True
        if not view.present:
            return False
        if self._ahead_since is None:
            self._ahead_since = clock.monotonic()
        return clock.monotonic() - self._ahead_since > PATIENCE_S

    def run(self, at_least: int) -> bool:
        """Until a peer gave us the state of a round that new, or it is no longer wanted."""
        loop, pause_s = self._loop, FIRST_PAUSE_S
        reason = f"the swarm went on to round {at_least} without it"
        late = set_aside(loop, reason)
        loop.enter(Stage.AWAY)
        while self._is_wanted():
            loop.show(Activity.CATCHING_UP, f"taking round {at_least} from another peer")
            state = loop.averager.fetch_state(at_least, DOWNLOAD_S, self._is_wanted)
            if state is not None:
                loop.learner.load_state(*state)
                loop.start_round()
                hand_in(loop, late, reason)
                loop.peer.share_state(loop.learner.round)
                self._ahead_since = None
                return True
            loop.show(
                Activity.CATCHING_UP,
                f"no peer could give round {at_least}; trying again in {pause_s:.0f} s",
            )
            clock.sleep_while(self._is_wanted, pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            view = loop.tracker.view()
            if view.round is None or view.round == loop.learner.round:
                break
            at_least = min(at_least, view.round) if view.round < at_least - 1 else at_least
        hand_in(loop, late, reason)
        return False

    def _is_wanted(self) -> bool:
        return self._loop.wish().wish is Wish.RUN
