"""What a device holds of one text: the shard it reads, and the end of those before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from trainer.data.marks import Held, Place
from trainer.grant import SILENCE_S, Lease, ShardAnswer
from trainer.swarm import clock
from trainer.wire import Message

SLACK_S = 60.0  # until all know, by the coordinator, that the site heard somebody; at most 40 s


class Reach(NamedTuple):
    """How far in a shard: steps, and ids of the document after them."""

    position: int
    skip: int

    @classmethod
    def of(cls, lease: Lease) -> Reach:
        return cls(lease.position, lease.skip)


@dataclass
class Reading:
    """A shard. The trainer has got what is before `taken`, and the swarm what is before `kept`."""

    lease: Lease
    taken: Reach
    kept: Reach
    is_taken: bool = False  # to its end
    is_read: bool = False  # to its end, by whoever prepares batches

    @classmethod
    def of(cls, lease: Lease) -> Reading:
        return cls(lease, Reach.of(lease), Reach.of(lease))

    def is_of(self, lease: Lease | None) -> bool:
        mine = self.lease
        return lease is not None and (lease.shard, lease.passes) == (mine.shard, mine.passes)

    def at(self, reach: Reach) -> Lease:
        return self.lease.model_copy(update=reach._asdict())


class Saved(Message):
    """What the swarm has not got yet: of those read to the end, and of the leased one."""

    read: tuple[Lease, ...] = ()
    leased: Lease | None = None


@dataclass
class Holding:
    """`readings`: the shard that is leased comes last. Before it those that were read to the end,
    of which the swarm has not got everything yet: the site counts them as read, so they are this
    device's to the end, also after it was killed.

    `claim` is what it held when it was stopped, until the site says whether that is still so;
    `finished` what was read to its end, until the site knows; `until`: so long the lease surely is
    ours (site time).
    """

    readings: list[Reading] = field(default_factory=list)
    is_leased: bool = False
    claim: Reading | None = None
    asked: bool = False
    finished: Lease | None = None
    total: int = 0
    until: float = 0.0
    in_doubt: bool = False
    reason: str = ""
    now: Held = field(default_factory=lambda: Held(None, 0))

    @property
    def leased(self) -> Reading | None:
        return self.readings[-1] if self.is_leased else None

    # ------------------------------------------------------------ the site's answers
    def hear(self, answer: ShardAnswer, asked_at: float) -> None:
        """A renewed lease changes nothing. It is not renewed, either, when another device had the
        shard and read on meanwhile."""
        lease, self.reason, self.in_doubt = answer.lease, answer.reason, False
        claim, self.claim, self.finished = self.claim, None, None
        if lease is not None:
            self.until = asked_at + lease.valid_s
        present = claim or self.leased
        if lease and present and present.is_of(lease) and Reach.of(lease) <= present.kept:
            if claim is not None:
                self._lease(claim)
            return
        is_passed_on = self.leased.is_read if self.leased else lease is None
        if not is_passed_on:
            self._lose()
        self.is_leased = False
        if lease is not None:
            self._lease(Reading.of(lease))

    def _lease(self, reading: Reading) -> None:
        self.readings.append(reading)
        self.is_leased, self.total = True, 0

    def _lose(self) -> None:
        """What is held changes, and not by reading to the end."""
        if self.is_leased:
            self.readings.pop()
        self.is_leased = False
        self.now = Held(None, self.now.tenure + 1)

    def again(self) -> None:
        """There is no next shard: the same one for another pass, from its beginning."""
        leased = self.leased
        assert leased is not None
        update = {"passes": leased.lease.passes + 1, "position": 0, "skip": 0}
        self._lease(Reading.of(leased.lease.model_copy(update=update)))

    def lasts(self, heard_at: float | None) -> bool:
        """Whether a lease that ran out is still ours; if so, for a while longer.

        It is when the site, as far as the swarm knows, has heard nobody since well before that, and
        for so long that its next answer to anybody renews all leases.
        """
        assert self.leased is not None
        now = clock.now()
        self.in_doubt = heard_at is not None and (
            heard_at + SLACK_S >= self.until or now - heard_at <= SILENCE_S + SLACK_S
        )
        if not self.in_doubt:
            self.until = now + self.leased.lease.valid_s - SLACK_S
        return not self.in_doubt

    # ------------------------------------------------------------ reading
    def begin(self) -> Held:
        """The oldest that is not read to its end, after what the trainer has got of it."""
        unread = next((one for one in self.readings if not one.is_read), None)
        lease = unread.at(unread.taken) if unread else None
        self.now = Held(lease, self.now.tenure)
        return self.now

    def read(self, lease: Lease) -> bool:
        """That was read to its end. Whether it is the one that is leased."""
        for reading in self.readings:
            if reading.is_of(lease):
                reading.is_read = True
        return self.leased is not None and self.leased.is_of(lease)

    def take(self, place: Place) -> None:
        before, reading = self._reached(place)
        for one in before:
            one.is_taken = True
        if reading is not None:
            reading.taken = Reach(place.position, place.skip)
            if reading is self.leased:
                self.total = place.total

    def keep(self, place: Place) -> None:
        before, reading = self._reached(place)
        del self.readings[: len(before)]
        if reading is not None:
            reading.kept = max(reading.kept, Reach(place.position, place.skip))

    def _reached(self, place: Place) -> tuple[list[Reading], Reading | None]:
        """What is read to its end, and what the place is in; everything comes after all shards."""
        for number, reading in enumerate(self.readings):
            if reading.is_of(place.held.lease):
                return self.readings[:number], reading
        is_through = place.held.lease is None
        return [one for one in self.readings if is_through and one is not self.leased], None

    def rewind(self) -> None:
        for reading in self.readings:
            reading.is_read = reading.is_taken

    # ------------------------------------------------------------ over a restart
    def saved(self) -> Saved:
        present = self.claim or self.leased
        return Saved(
            read=tuple(one.at(one.kept) for one in self.readings if one is not present),
            leased=present.at(present.kept) if present else None,
        )

    @classmethod
    def restored(cls, saved: Saved) -> Holding:
        """What was leased is claimed: it may have gone to another device."""
        claim = Reading.of(saved.leased) if saved.leased else None
        return cls(readings=[Reading.of(lease) for lease in saved.read], claim=claim)
