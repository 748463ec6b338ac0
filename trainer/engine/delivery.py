"""What the trainer gets of texts that are shared out: nothing twice, and nothing of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from trainer.data.marks import Mark
from trainer.data.shards import Shards

Made = TypeVar("Made")


class Delivery:
    """`mark` is how far in the texts the newest batch goes that was given out."""

    def __init__(self, shards: Shards | None = None) -> None:
        self._shards = shards
        self.mark: Mark = {}

    def of(self, begin: Callable[[], Iterator[tuple[Made, Mark]]]) -> Iterator[Made]:
        """What `begin` makes, which reads anew when what is held has changed since it began.

        What was made of the old lease is dropped. Raises what `begin` and its result raise, and
        SourceUnavailable while it is in doubt what is held.
        """
        while True:
            began: dict[int, int] = {}
            for made, mark in begin():
                for text, place in mark.items():
                    began.setdefault(text, place.held.tenure)
                if self._has_changed(mark, began):
                    break
                self._take(mark)
                yield made
            else:
                return

    def _has_changed(self, mark: Mark, began: dict[int, int]) -> bool:
        if self._shards is None:
            return False
        return any(
            len({place.held.tenure, began[text], self._shards.tenure(text)}) > 1
            for text, place in mark.items()
        )

    def _take(self, mark: Mark) -> None:
        self.mark = mark
        if self._shards is not None:
            for text, place in mark.items():
                self._shards.take(text, place)

    def keep(self, mark: Mark) -> None:
        """What was learned up to there is in the swarm's model."""
        if self._shards is not None:
            for text, place in mark.items():
                self._shards.keep(text, place)
