"""The present state of one collaboration, without I/O: peers' standings in, one snapshot out.

Boards of several web processes merge in any order and any number of times: of each device the
newest standing counts. All times are site time, in seconds since the epoch; a device's own clock
is never asked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.wire import Activity, Progress, Role

LEASE_S = 15.0
MOST_MEMBERS_SHOWN = 100
MOST_LOSS = 1e4  # per target token; more is no loss but a broken peer
NOT_YET = {Activity.STARTING, Activity.CATCHING_UP}
NO_TRAINERS = {Role.COORDINATOR, Role.EVALUATOR}


@dataclass(frozen=True, slots=True)
class Standing:
    """What one device last said, and when the site heard it.

    `device` and `owner` never leave the site; `row` names the device in public, `name` its owner
    as anybody may see them. `gone`: it said good-bye, which ends its lease at once.
    """

    device: str
    owner: int
    row: str
    name: str
    role: Role
    seen: float
    progress: Progress
    gone: bool = False

    @property
    def age_order(self) -> tuple[Any, ...]:
        """Sorts standings of one device, newest last; without ties, so that merging is exact."""
        said = self.progress
        return (self.seen, self.gone, said.round, said.samples, said.tokens, said.loss_sum)

    @property
    def loss_sum(self) -> float:
        """0 where the claimed sum cannot be one of losses."""
        return self.progress.loss_sum if self._has_believable_loss else 0.0

    @property
    def tokens_with_loss(self) -> int:
        return self.progress.tokens if self._has_believable_loss else 0

    @property
    def _has_believable_loss(self) -> bool:
        return 0 <= self.progress.loss_sum <= MOST_LOSS * self.progress.tokens


@dataclass
class Board:
    standings: dict[str, Standing] = field(default_factory=dict)

    def update(self, standing: Standing) -> None:
        held = self.standings.get(standing.device)
        if held is None or standing.age_order >= held.age_order:
            self.standings[standing.device] = standing

    def merge(self, standings: Iterable[Standing]) -> None:
        for standing in standings:
            self.update(standing)

    def forget(self, now: float, after_s: float = 4 * LEASE_S) -> None:
        """Drops what expired long ago, so that the board does not grow without end."""
        for device, standing in list(self.standings.items()):
            if now - standing.seen > after_s:
                del self.standings[device]

    def living(self, now: float) -> list[Standing]:
        """Standings whose lease runs, by device, so that sums do not depend on the order heard."""
        held = sorted(self.standings.values(), key=lambda standing: standing.device)
        return [one for one in held if not one.gone and now - one.seen <= LEASE_S]

    def snapshot(self, now: float, names: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Everything here is public; `names` by device are newer than those in the standings.

        `peers` counts those within one round of the current one, `senders` those of them in client
        mode; `behind` are the other training peers, and `online` is both. `samples` and `loss`
        (mean per target token) are over the current round only; `loss` is None while nothing was
        measured in it.
        """
        living = self.living(now)
        training = [one for one in living if one.role not in NO_TRAINERS]
        current = current_round(living)
        peers = [one for one in training if abs(one.progress.round - current) <= 1]
        members = [one for one in training if one.progress.round == current]
        return {
            "round": current,
            "loss": mean_loss(members),
            "samples": sum(one.progress.samples for one in members),
            "samples_per_s": round(math.fsum(one.progress.samples_per_s for one in peers), 2),
            "peers": len(peers),
            "senders": sum(one.role == Role.SENDER for one in peers),
            "behind": len(training) - len(peers),
            "online": len(training),
            "coordinators": sum(one.role == Role.COORDINATOR for one in living),
            "expired": sum(
                not one.gone and now - one.seen > LEASE_S for one in self.standings.values()
            ),
            "members": [
                public_row(one, current, (names or {}).get(one.device, one.name))
                for one in shown_members(training)
            ],
        }


def current_round(living: list[Standing]) -> int:
    """The round most training peers are in, of two the newer one.

    Who is still catching up has no vote. While a coordinator is online, only its round and the
    next one can win: one peer's claim of round 10⁶ moves nobody.
    """
    ready = [one for one in living if one.progress.activity not in NOT_YET]
    witnessed = [one.progress.round for one in ready if one.role == Role.COORDINATOR]
    votes = Counter(one.progress.round for one in ready if one.role not in NO_TRAINERS)
    if witnessed:
        newest = max(witnessed)
        near = [number for number in votes if newest <= number <= newest + 1]
        return max(near, key=lambda number: (votes[number], number), default=newest)
    if not votes:
        return max((one.progress.round for one in living), default=0)
    return max(votes, key=lambda number: (votes[number], number))


def mean_loss(standings: Iterable[Standing]) -> float | None:
    """Weighted by target tokens; None when there are none. fsum: the order does not matter."""
    counted = [one for one in standings if one.tokens_with_loss]
    tokens = sum(one.tokens_with_loss for one in counted)
    return round(math.fsum(one.loss_sum for one in counted) / tokens, 6) if tokens else None


def shown_members(training: list[Standing]) -> list[Standing]:
    """The fastest, at most MOST_MEMBERS_SHOWN."""
    fastest = sorted(training, key=lambda one: (-one.progress.samples_per_s, one.row))
    return fastest[:MOST_MEMBERS_SHOWN]


def public_row(standing: Standing, current: int, name: str) -> dict[str, Any]:
    """What anybody may know of one device: never its id, address, owner's id or machine."""
    said = standing.progress
    return {
        "id": standing.row,
        "name": name,
        "role": str(standing.role),
        "activity": str(said.activity),
        "reason": said.reason,
        "round": said.round,
        "in_round": said.round == current,
        "samples": said.samples,
        "samples_per_s": round(said.samples_per_s, 2),
        "loss": mean_loss([standing]),
        "link_mbit_s": said.link_mbit_s,
        "share": None if said.share is None else round(said.share, 3),
    }


def changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The keys of `new` that are not as in `old`; both have the same keys."""
    return {key: value for key, value in new.items() if key not in old or old[key] != value}


def apply(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return {**old, **patch}
