"""One simulated peer's part in the net: `trainer.swarm.peer` and `averager`, without hivemind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from torch import Tensor

from trainer.engine.transport import StateSource, Watch
from trainer.recipe import Recipe
from trainer.simulator.board import Tracker
from trainer.simulator.liars import Liar
from trainer.simulator.links import transfer_s
from trainer.simulator.meeting import Meeting, Rules, Seat
from trainer.simulator.net import Net, Place
from trainer.swarm import clock
from trainer.swarm.averager import SPARE_S
from trainer.swarm.download import MOST_DONORS, BadState, check_state
from trainer.swarm.judgement import limits_of
from trainer.swarm.progress import Standing
from trainer.swarm.records import Records
from trainer.swarm.verdict import MOST_RECEIVED, Note, Verdict, short
from trainer.wire import Activity, Outcome

WATCH_EVERY_S = 1.0


class SimulatedPeer:
    def __init__(
        self,
        net: Net,
        recipe: Recipe,
        name: str,
        place: Place,
        coordinators: frozenset[str],
        liar: Liar | None = None,
    ) -> None:
        self._net, self._recipe, self._place, self._liar = net, recipe, place, liar
        self.peer_id, self.coordinators = name, coordinators
        self.tracker: Tracker | None = None

    def average(self, tensors: Sequence[Tensor], state_source: StateSource) -> SimulatedAverager:
        self._place.state_source = state_source
        return SimulatedAverager(
            self._net, self._recipe, self.peer_id, self._place, self.coordinators, self._liar
        )

    def track(self, standing: Callable[[], Standing]) -> Tracker:
        records = Records(self._recipe.round, self.coordinators)
        self.tracker = Tracker(self._net, self.peer_id, records, standing, self._liar)
        self.tracker.start()
        return self.tracker

    def share_state(self, round_number: int) -> None:
        if self._place.link.reachable:
            self._place.shared_round = round_number

    def addresses(self) -> tuple[str, ...]:
        return (f"simulated/{self.peer_id}",)

    def tend(self) -> None:
        """There is no site, and no process but this one."""

    def problem(self) -> str:
        """Everybody may take part."""
        return ""

    def close(self, *, says_goodbye: bool) -> None:
        if self.tracker is not None:
            self.tracker.stop(says_goodbye=says_goodbye)
        self._net.leave(self.peer_id)


class SimulatedAverager:
    def __init__(
        self,
        net: Net,
        recipe: Recipe,
        name: str,
        place: Place,
        coordinators: frozenset[str],
        liar: Liar | None,
    ) -> None:
        self._net, self._recipe, self._name = net, recipe, name
        self._place, self._coordinators, self._liar = place, coordinators, liar

    def run_round(
        self, offer: Sequence[Tensor], note: Note, others: Collection[str], watch: Watch
    ) -> tuple[Verdict, list[Tensor]]:
        said = [tensor.detach().clone() for tensor in offer]
        link = {"link_mbit_s": self.link_mbit_s, "received": self._received()}
        note = note.model_copy(update=link)
        if self._liar is not None:
            said, note = self._liar.offer(said, note)
        task = self._place.timekeeper.task
        clock.sleep(2 * self._place.link.latency_s)
        wrong_s = self._place.timekeeper.wrong_s()
        seat = Seat(self._name, self._place.link, task, wrong_s, said, note)
        meeting = self._find(seat, others)
        longest_s = self._recipe.round.matchmaking_s + self._recipe.round.averaging_s + 2 * SPARE_S
        until = self._net.events.now + longest_s
        while seat.result is None:
            running = meeting.began_s is not None
            go_on = watch(Activity.AVERAGING if running else Activity.MATCHMAKING)
            if not go_on or self._net.events.now > until:
                meeting.lose(self._name)
                reason = "took too long" if go_on else "left before it was done"
                return Verdict(note.round, Outcome.FAILED, {}, reason=reason), []
            task.pause(WATCH_EVERY_S)
        return seat.result

    @property
    def link_mbit_s(self) -> float:
        """It has measured its link rightly."""
        return self._place.link.mbit_s

    def _received(self) -> dict[str, float]:
        """Of as many others as a note has room for, as if averages so far had shown their links."""
        places = {n: p.link.mbit_s for n, p in self._net.places.items() if n != self._name}
        fastest = sorted(places, key=lambda name: (-places[name], name))[:MOST_RECEIVED]
        return {short(name): places[name] / len(places) for name in fastest}

    def _find(self, seat: Seat, others: Collection[str]) -> Meeting:
        """The open meeting of this round, or a new one that starts after matchmaking."""
        net = self._net
        meeting = next((m for m in net.meetings if m.welcomes(seat)), None)
        if meeting is None:
            rules = Rules(
                self._recipe.round,
                limits_of(self._recipe),
                self._coordinators,
            )
            meeting = Meeting(net, rules, seat.note.round, set(others), net.events.now)
            net.meetings.append(meeting)
            net.events.after(self._recipe.round.matchmaking_s, meeting.start)
        meeting.join(seat)
        return meeting

    def fetch_state(
        self, at_least: int, timeout_s: float, is_wanted: Callable[[], bool]
    ) -> tuple[int, list[Tensor]] | None:
        """From the first that answers of the newest donors, in random order among equals."""
        shared = {n: p.shared_round for n, p in self._net.places.items() if n != self._name}
        donors = [n for n, number in shared.items() if number is not None and number >= at_least]
        self._net.rng.shuffle(donors)
        donors.sort(key=lambda name: shared[name] or 0, reverse=True)
        until = self._net.events.now + timeout_s
        for donor in donors[:MOST_DONORS]:
            found = self._download(donor, at_least)
            if found is not None or self._net.events.now > until or not is_wanted():
                return found
        return None

    def _download(self, donor: str, at_least: int) -> tuple[int, list[Tensor]] | None:
        place, own = self._net.places.get(donor), self._place
        if place is None or place.state_source is None or own.state_source is None:
            return None
        metadata, tensors = place.state_source()
        size_bytes = 4 * sum(tensor.numel() for tensor in tensors)
        clock.sleep(transfer_s(place.link, own.link, size_bytes))
        if not self._net.answers(donor):
            return None
        shapes = [tensor.shape for tensor in own.state_source()[1]]
        try:
            return check_state(metadata, tensors, shapes, at_least)
        except BadState:
            return None
