"""A text that is shared out, as a trainer gets it that learns of one row at a time."""

from __future__ import annotations

from collections.abc import Iterator

from trainer.data.marks import Document, Mark, Place
from trainer.data.mixture import Mixture
from trainer.data.shards import Shards, SharedText
from trainer.engine.delivery import Delivery


def rows_of(text: SharedText, shards: Shards) -> Iterator[Document]:
    """Endless; each is in the swarm's model when the next one is asked for."""

    def begin() -> Iterator[tuple[Document, Mark]]:
        shards.rewind()
        for row in Mixture([text], [1.0], "own").documents():
            assert row.origin is not None
            yield row, {0: Place(row.origin.held, row.origin.after, 0, row.origin.total)}

    delivery = Delivery(shards)
    for row in delivery.of(begin):
        delivery.keep(delivery.mark)
        yield row
