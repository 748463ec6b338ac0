"""What peers tell each other between averages, and what one peer makes of it. Pure: no network.

Each peer keeps one signed record in the DHT (`Standing`, under 2 KB, stored at most once a second).
A record that is malformed or beyond belief is ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median_high

from pydantic import Field, ValidationError

from trainer.measures import Name
from trainer.recipe import MOST_CHOSEN, Round
from trainer.wire import Count, Message, Role

EXPIRES_S = 15.0
MOST_AHEAD = 2000  # rounds that a single other peer may be ahead and still be believed
SPARE_S = 2.0  # that a record may be on its way


class Stage(StrEnum):
    TRAINING = "training"
    FULL = "full"  # has taken its most local steps: waits for the others
    READY = "ready"  # looks for its group, or averages
    AWAY = "away"  # paused or catching up: not waited for


class Standing(Message):
    """One peer's record. `at` and `started` (of its round) are swarm time. `deadline_s` is what it
    has measured (`trainer/swarm/deadline.py`), None while it has not. `heard_at`, a coordinator's,
    is when the site last heard a device ask for a part of a text, by its own clock. `chosen`, a
    coordinator's, is whose turn this round is (`selection.py`).
    """

    round: Count
    samples: Count = 0
    tokens: Count = 0
    loss_sum: float = 0.0
    samples_per_s: float = Field(0.0, ge=0, le=10**7)
    role: Role
    stage: Stage
    started: float = Field(ge=0, le=10**11)
    at: float = Field(ge=0, le=10**11)
    deadline_s: float | None = Field(None, gt=0, le=86_400)
    heard_at: float | None = Field(None, ge=0, le=10**11)
    chosen: tuple[Name, ...] | None = Field(None, max_length=MOST_CHOSEN)

    def samples_now(self, now: float) -> float:
        """Samples it has by now, if it went on at its rate since the record was written."""
        going = self.stage is Stage.TRAINING
        age = min(max(now - self.at, 0.0), EXPIRES_S)
        return self.samples + (self.samples_per_s * min(age, 5.0) if going else 0.0)

    def most_samples(self, until: float, timing: Round) -> int:
        """What it can offer by then: what it showed, twice what its rate adds, and a bit.

        Who has told no rate yet, as a newcomer in its first second, may be as fast as anybody.
        """
        rate = self.samples_per_s or float(timing.target_samples)
        added = 2 * rate * (max(until - self.at, 0.0) + SPARE_S)
        return min(int(self.samples + added + timing.target_samples / 4), timing.most_samples())


@dataclass(frozen=True)
class View:
    """The swarm as one peer sees it now; the peer itself is not in it.

    `round` is the newest round worth believing, None when nobody else is there. `abreast` are the
    live peers of that round. `is_old`: nobody was looked for of late, as after a sleep, so that an
    empty view means nothing.
    """

    round: int | None
    abreast: Mapping[str, Standing]
    present: int
    peers: int
    coordinators: int
    samples: float
    tokens: int
    loss: float | None
    samples_per_s: float
    is_old: bool = False

    def started(self) -> float | None:
        """The middle of what they say: one that lies cannot bring the deadline forward."""
        said = [standing.started for standing in self.abreast.values()]
        return median_high(said) if said else None

    def deadlines(self) -> list[float]:
        """What those of the round have measured."""
        return [s.deadline_s for s in self.abreast.values() if s.deadline_s is not None]


def credible(value: object, timing: Round, now: float) -> Standing | None:
    """A record as far as it can be true; None when it is malformed or cannot be.

    Nobody holds more than `most_samples`, and nobody fills a target batch in less than a second.
    """
    try:
        standing = Standing.model_validate(value)
    except ValidationError:
        return None
    if not now - EXPIRES_S - 5 <= standing.at <= now + 5:
        return None
    if standing.samples > timing.most_samples():
        return None
    fastest = min(standing.samples_per_s, float(timing.target_samples))
    return standing.model_copy(update={"samples_per_s": fastest})


def look(
    standings: Mapping[str, Standing], own_round: int, coordinators: Collection[str], now: float
) -> View:
    """`standings` by peer id, without our own. Only `coordinators` may claim that role."""
    newest = swarm_round(standings, own_round, coordinators)
    abreast = {name: s for name, s in standings.items() if s.round == newest}
    training = [s for name, s in abreast.items() if name not in coordinators]
    working = [s for s in training if s.stage is not Stage.AWAY]
    tokens = sum(s.tokens for s in training)
    return View(
        round=newest,
        abreast=abreast,
        present=sum(s.stage is not Stage.AWAY for s in standings.values()),
        peers=len(training),
        coordinators=sum(name in coordinators for name in standings),
        samples=sum(s.samples_now(now) for s in training),
        tokens=tokens,
        loss=sum(s.loss_sum for s in training) / tokens if tokens else None,
        samples_per_s=sum(s.samples_per_s for s in working),
    )


def swarm_round(
    standings: Mapping[str, Standing], own_round: int, coordinators: Collection[str]
) -> int | None:
    """The newest round that is believed.

    A coordinator is believed; so is a round that a second peer is at most one behind. One peer by
    itself is believed only where nobody else could confirm it, and not for a huge leap. A sender
    has no say, for nobody can take a state from it: where all are senders and the coordinator
    comes back from an older checkpoint, they go back with it.
    """
    volunteers = [s for name, s in standings.items() if name not in coordinators]
    others = [s.round for s in volunteers]
    known = [s.round for name, s in standings.items() if name in coordinators]
    claims = [s.round for s in volunteers if s.role is not Role.SENDER]
    for claim in sorted(claims, reverse=True):
        confirmed = sum(r >= claim - 1 for r in [*others, *known, own_round]) >= 2
        single = len(others) == 1 and abs(claim - max([*known, own_round])) <= MOST_AHEAD
        if confirmed or single:
            return max([claim, *known])
    only_senders = bool(others) and not claims
    return max(known, default=own_round if only_senders else None)


def counts(members: Collection[str], live: Collection[str], coordinators: Collection[str]) -> bool:
    """Whether a group speaks for the swarm: it has the first of the live coordinators.

    Where none is live, it needs more than half of the peers, or just half with the lowest name.
    Peers that have not found each other yet disagree about who is live, so a majority alone would
    let two groups of newcomers end the same round.
    """
    everybody = set(live) | set(members)
    if leader := min(everybody & set(coordinators), default=None):
        return leader in members
    inside = len(set(members))
    if 2 * inside != len(everybody):
        return 2 * inside > len(everybody)
    return min(everybody) in members


def expected_group(view: View, round_number: int) -> set[str]:
    """Peers that a round waits for: live and in it."""
    return {
        name
        for name, standing in view.abreast.items()
        if standing.round == round_number and standing.stage is not Stage.AWAY
    }
