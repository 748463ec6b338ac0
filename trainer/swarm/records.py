"""What one peer knows of the others' records, and what it holds against or for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from trainer.recipe import Round
from trainer.swarm.progress import EXPIRES_S, Stage, Standing, View, credible, look
from trainer.swarm.verdict import MOST_WITNESSED, short
from trainer.wire import Role

STORE_EVERY_S = 1.0
REFRESH_STORE_S = 4.0
ASSUMED_S = 6.0


class Records:
    """The newest believable record of each other peer. `now` is swarm time everywhere."""

    def __init__(self, timing: Round, coordinators: Collection[str]) -> None:
        self._timing, self._coordinators = timing, frozenset(coordinators)
        self._standings: dict[str, Standing] = {}
        self._forgotten: dict[str, float] = {}
        self._assumed: dict[str, Standing] = {}
        self._asked_at = float("-inf")
        self.heard_at: float | None = None

    def take(self, found: Mapping[str, object], now: float, asked_at: float | None = None) -> None:
        """A complete reading, asked for at `asked_at`, replaces the one before it, but for what we
        know better."""
        self._asked_at = now if asked_at is None else asked_at
        read = {name: credible(value, self._timing, now) for name, value in found.items()}
        standings = {name: standing for name, standing in read.items() if standing is not None}
        self._hear(standings)
        for name, assumed in list(self._assumed.items()):
            newest = standings.get(name)
            if newest and newest.at < assumed.at and now - assumed.at < ASSUMED_S:
                standings[name] = assumed
            else:
                del self._assumed[name]
        for name, since in list(self._forgotten.items()):
            if name in standings and standings[name].at <= since:
                del standings[name]
            elif now - since > EXPIRES_S:
                del self._forgotten[name]
        self._standings = standings

    def _hear(self, standings: Mapping[str, Standing]) -> None:
        """What coordinators say of the site is kept while they are away."""
        told = [s.heard_at for name, s in standings.items() if name in self._coordinators]
        known = [at for at in (*told, self.heard_at) if at is not None]
        self.heard_at = max(known, default=None)

    def view(self, own_round: int, now: float) -> View:
        live = {n: s for n, s in self._standings.items() if now - s.at <= EXPIRES_S}
        view = look(live, own_round, self._coordinators, now)
        return replace(view, is_old=now - self._asked_at > EXPIRES_S)

    def seen(self, round_number: int, now: float) -> dict[str, int]:
        """The most samples that peers of this round can offer at the next average, by `short`.

        Of the largest when there are too many: those weigh most.
        """
        until = now + self._timing.matchmaking_s
        most = {
            short(name): standing.most_samples(until, self._timing)
            for name, standing in self._standings.items()
            if standing.round == round_number and name not in self._coordinators
        }
        largest = sorted(most, key=lambda name: most[name], reverse=True)[:MOST_WITNESSED]
        return {name: most[name] for name in largest}

    def knows(self, names: Collection[str]) -> bool:
        return set(names) <= self._standings.keys()

    def reachable(self, names: Collection[str]) -> list[str]:
        """Those of `names` that can be asked whether they are still there."""
        return [
            name
            for name in names
            if name in self._standings and self._standings[name].role is not Role.SENDER
        ]

    def forget(self, names: Collection[str], now: float) -> None:
        """Ignores what these peers have said so far: they were lost."""
        for name in names:
            self._forgotten[name] = now
            self._standings.pop(name, None)

    def assume(self, names: Collection[str], round_number: int, now: float) -> None:
        """These peers have entered this round with us, whatever their last records say.

        Holds until newer records arrive, and spares a wait for them after each round.
        """
        for name in names:
            last = self._standings.get(name)
            if last is not None and last.round <= round_number:
                self._assumed[name] = self._standings[name] = last.model_copy(
                    update={
                        "round": round_number,
                        "samples": 0,
                        "tokens": 0,
                        "loss_sum": 0.0,
                        "stage": Stage.TRAINING,
                        "chosen": None,
                        "started": now,
                        "at": now,
                    }
                )


def worth_storing(mine: Standing, last: Standing | None) -> bool:
    """Whether others should see `mine`: at once with a new round or stage, else now and then."""
    if last is None or (mine.round, mine.stage) != (last.round, last.stage):
        return True
    pause_s = STORE_EVERY_S * 0.95 if mine.samples != last.samples else REFRESH_STORE_S
    return mine.at - last.at >= pause_s
