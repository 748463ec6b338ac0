"""Several texts mixed by weight, each passed over again and again in a new order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainer.data.marks import Document
from trainer.data.shards import SharedText
from trainer.recipe import Text
from trainer.sources.base import Source, SourceUnavailable
from trainer.sources.hub import HubSource
from trainer.sources.kinds import TextSource
from trainer.sources.places import Disk, Web
from trainer.sources.private import PrivateSource


def open_source(text: Text, path: Path | None) -> Source:
    """`path` is where the agent put a text of kind `site`, or the volunteer has a private one.

    Raises SourceUnavailable where this device has none.
    """
    if text.kind == "private":
        if path is None:
            raise SourceUnavailable("no text of its own was named on this device")
        return PrivateSource(path)
    if text.dataset is not None and path is None:
        return HubSource(text.dataset)
    if text.kind == "http" and path is None:
        return TextSource(Web(text.url))
    return TextSource(Disk(path or Path(text.path)))


class Mixture:
    """Endless documents. The order is a function of `seed`: recipe, peer and round it starts at."""

    def __init__(self, sources: Sequence[Source], weights: Sequence[float], seed: str) -> None:
        self._sources, self._weights, self._seed = sources, weights, seed

    @property
    def broken_lines(self) -> int:
        return sum(source.tally.broken for source in self._sources)

    def __iter__(self) -> Iterator[str]:
        return (document.text for document in self.documents())

    def documents(self) -> Iterator[Document]:
        """Raises SourceUnavailable when a text cannot be read or has no documents."""
        rng = random.Random(self._seed)  # noqa: S311 - an order, not a secret
        streams = [
            self._endless(source, f"{self._seed}/{number}")
            for number, source in enumerate(self._sources)
        ]
        if len(streams) == 1:
            yield from streams[0]
        while True:
            yield next(rng.choices(streams, self._weights)[0])

    def _endless(self, source: Source, seed: str) -> Iterator[Document]:
        passes = 0
        while True:
            before = source.tally.read
            for text in source.documents(f"{seed}/{passes}"):
                origin = source.origin if isinstance(source, SharedText) else None
                yield Document(text, origin)
            if source.tally.read == before:
                raise SourceUnavailable("a text of the recipe has no readable line")
            passes += 1
