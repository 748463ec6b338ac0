"""Which documents a batch is made of, and so from where on nothing of a text was trained yet."""

from __future__ import annotations

from typing import NamedTuple

from trainer.grant import Lease


class Held(NamedTuple):
    """What is to be read of a text: a shard from the lease's place on; None: everything.

    `tenure` is another number when the lease was lost, or came, other than by reading to the end.
    """

    lease: Lease | None
    tenure: int


class Origin(NamedTuple):
    """Where a document of a leased text is from: the text's number in the recipe, what was held,
    and the steps of the shard before and after it, of `total` (0: not known). `skip` of its ids
    were trained already.
    """

    text: int
    held: Held
    before: int = 0
    after: int = 0
    total: int = 0
    skip: int = 0


class Document(NamedTuple):
    text: str
    origin: Origin | None = None


class Place(NamedTuple):
    """After step `position` of a shard, and after `skip` ids of the document that comes then."""

    held: Held
    position: int
    skip: int
    total: int


Mark = dict[int, Place]  # by the number of the text in the recipe


class Track:
    """Follows documents into sequences. `used`: so many ids of the newest one are in them."""

    def __init__(self) -> None:
        self._whole: Mark = {}
        self._newest: Origin | None = None
        self.used = 0

    def enter(self, origin: Origin | None) -> None:
        """The next document; all of the one before it is in sequences, or waits for this one."""
        if (old := self._newest) is not None:
            self._whole[old.text] = Place(old.held, old.after, 0, old.total)
        self._newest, self.used = origin, 0

    def mark(self) -> Mark:
        """Of all that is in sequences now."""
        if (newest := self._newest) is None:
            return dict(self._whole)
        place = Place(newest.held, newest.before, self.used, newest.total)
        return {**self._whole, newest.text: place}
