"""A data set of a Hugging Face hub, or of a server that answers like one, by its name.

A hub has every public data set as Parquet, whatever it was made of, and lists the files:
GET /api/datasets/NAME/parquet/CONFIG/SPLIT. They are read by ranges, so nothing is stored, no
program of a data set runs here, and any device begins anywhere. `HF_ENDPOINT` in the environment
names another hub, `HF_TOKEN` is for data sets that are not public.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from math import ceil

from trainer.parts import DataSet
from trainer.sources.base import Piece, Source, SourceUnavailable
from trainer.sources.places import Web
from trainer.sources.table import TableSource

HUB = "https://huggingface.co"
MAX_LIST_BYTES = 4 * 2**20


class HubSource(Source):
    """The files one after another; it is asked for the list when it is first read."""

    def __init__(self, dataset: DataSet, pause_s: float = 1.0) -> None:
        super().__init__()
        self._dataset, self._pause_s = dataset, pause_s
        self._tables: list[TableSource] = []

    def documents(self, seed: str) -> Iterator[str]:
        tables = list(self._files())
        random.Random(seed).shuffle(tables)  # noqa: S311 - an order, not a secret
        for table in tables:
            yield from table.documents(seed)

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        """Files `number`, `number + of`, …; of fewer than `of` of them equal shards.

        A step is a row.
        """
        tables = self._files()
        parts = ceil(of / len(tables))
        own = [divmod(one, parts) for one in range(number, len(tables) * parts, of)]
        sizes = [tables[file].num_rows(part, parts) for file, part in own]
        before = 0
        for (file, part), size in zip(own, sizes, strict=True):
            if before + size > start:
                found = tables[file].shard(part, parts, f"{seed}/{file}", max(0, start - before))
                for piece in found:
                    yield Piece(piece.document, before + piece.done, sum(sizes))
            before += size

    def _files(self) -> list[TableSource]:
        if not self._tables:
            self._tables = [
                TableSource(place, self.tally, self._dataset.column)
                for place in files_of(self._dataset, self._pause_s)
            ]
        return self._tables


def files_of(dataset: DataSet, pause_s: float = 1.0) -> list[Web]:
    """The Parquet files of a split. Raises SourceUnavailable."""
    place = f"/api/datasets/{dataset.name}/parquet/{dataset.config}/{dataset.split}"
    listed = at_hub(place, pause_s)
    try:
        with listed.open() as reply:
            files = json.loads(reply.read(MAX_LIST_BYTES))
    except ValueError:
        files = None
    if not isinstance(files, list) or not files:
        raise SourceUnavailable(
            f"{listed.where} lists no files: is that the data set's name, configuration and "
            "split, and has the hub its Parquet files?"
        )
    return [at_hub(f"{place}/{number}.parquet", pause_s) for number in range(len(files))]


def at_hub(place: str, pause_s: float = 1.0) -> Web:
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    return Web(hub + place, pause_s, os.environ.get("HF_TOKEN", ""))
