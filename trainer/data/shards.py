"""A text shared out among devices: each reads the shard that it holds a lease of, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from trainer.grant import Lease
from trainer.sources.base import Source


class Shards(Protocol):
    """What this device may read of each text, by its number in the recipe.

    `held` answers with one and the same object for as long as that is the lease. After `finish` it
    is another one: of the next shard, or of the same for another pass while there is no next. It
    raises SourceUnavailable while another device may have got what was held here. For that, `heed`
    tells it where to ask when the site last heard a device ask for a part (site time; None: not
    known).
    """

    def heed(self, heard_at: Callable[[], float | None]) -> None: ...

    def held(self, text: int) -> Lease | None: ...

    def read(self, text: int, lease: Lease, done: int, total: int) -> None: ...

    def finish(self, text: int, lease: Lease) -> None: ...


class SharedText(Source):
    """A source of which this device reads what it holds a lease of.

    It reads everything, in an order of its own, while it holds none, and when all that it is given
    is empty: there may be more devices than shards, and fewer lines.
    """

    def __init__(self, source: Source, number: int, shards: Shards, order: str) -> None:
        """`number` is the text's in the recipe. `order` is the same on every device: who gets a
        shard that another has begun goes on in the same order."""
        self.tally = source.tally
        self._source, self._number, self._shards = source, number, shards
        self._order = f"{order}/{number}"

    def documents(self, seed: str) -> Iterator[str]:
        """One shard that is not empty, or everything by `seed`; less when the lease changes.

        Raises SourceUnavailable when it ran out, and who else may read the shard is not known.
        """
        lease, num_empty = self._held(), 0
        while lease is not None and num_empty <= lease.num_shards:
            before = self.tally.read
            yield from self._leased(lease)
            if self.tally.read > before:
                return
            lease, num_empty = self._held(), num_empty + 1
        for document in self._source.documents(seed):
            yield document
            if self._held() is not lease:
                return

    def _leased(self, lease: Lease) -> Iterator[str]:
        order = f"{self._order}/{lease.shard}/{lease.passes}"
        pieces = self._source.shard(lease.shard, lease.num_shards, order, lease.position)
        for piece in pieces:
            if self._held() is not lease:
                return
            self._shards.read(self._number, lease, piece.done, piece.total)
            yield piece.document
        self._shards.finish(self._number, lease)

    def _held(self) -> Lease | None:
        return self._shards.held(self._number)
