"""A text shared out among devices: each reads the shard that it holds a lease of, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from trainer.data.marks import Held, Origin, Place
from trainer.grant import Lease
from trainer.sources.base import Source


class Leases(Protocol):
    """What to read of each text, by its number in the recipe.

    `begin` answers with what comes next; it raises SourceUnavailable while another device may have
    got what was held here. `held` tells without asking anybody: the object that `begin` answered
    with, for as long as that is so. `finish`: it was read to its end. `rewind` comes first when
    reading begins anew: then all that the trainer has not got is read again.
    """

    def rewind(self) -> None: ...

    def begin(self, text: int) -> Held: ...

    def held(self, text: int) -> Held: ...

    def finish(self, text: int, lease: Lease) -> None: ...


class Shards(Leases, Protocol):
    """And what was read. Of what was read under another `tenure` than the present one nothing may
    be trained on. That raises SourceUnavailable while it is in doubt; for that, `heed` tells where
    to ask when the site last heard a device ask for a part (site time; None: not known).

    `take`: the trainer has got all before that place. `keep`: what it learned of that is in the
    swarm's model, so whoever goes on begins after it.
    """

    def heed(self, heard_at: Callable[[], float | None]) -> None: ...

    def tenure(self, text: int) -> int: ...

    def take(self, text: int, place: Place) -> None: ...

    def keep(self, text: int, place: Place) -> None: ...


class SharedText(Source):
    """A source of which this device reads what it holds a lease of.

    It reads everything, in an order of its own, while it holds none, and when all that it is given
    is empty: there may be more devices than shards, and fewer lines. `origin` is that of the newest
    document.
    """

    def __init__(self, source: Source, number: int, leases: Leases, order: str) -> None:
        """`number` is the text's in the recipe. `order` is the same on every device: who gets a
        shard that another has begun goes on in the same order."""
        self.tally = source.tally
        self._source, self._number, self._leases = source, number, leases
        self._order = f"{order}/{number}"
        self.origin = Origin(number, Held(None, 0))

    def documents(self, seed: str) -> Iterator[str]:
        """One shard that is not empty, or everything by `seed`; less when what is held changes.

        Raises SourceUnavailable when it ran out, and who else may read the shard is not known.
        """
        held, num_empty = self._leases.begin(self._number), 0
        while held.lease is not None and num_empty <= held.lease.num_shards:
            before = self.tally.read
            yield from self._leased(held, held.lease)
            if self.tally.read > before:
                return
            held, num_empty = self._leases.begin(self._number), num_empty + 1
        self.origin = Origin(self._number, Held(None, held.tenure))
        for document in self._source.documents(seed):
            yield document
            if self._leases.held(self._number) is not held:
                return

    def _leased(self, held: Held, lease: Lease) -> Iterator[str]:
        order = f"{self._order}/{lease.shard}/{lease.passes}"
        before, skip = lease.position, lease.skip
        for piece in self._source.shard(lease.shard, lease.num_shards, order, lease.position):
            if self._leases.held(self._number) is not held:
                return
            self.origin = Origin(self._number, held, before, piece.done, piece.total, skip)
            yield piece.document
            before, skip = piece.done, 0
        self._leases.finish(self._number, lease)
