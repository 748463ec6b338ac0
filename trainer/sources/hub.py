"""A data set of a Hugging Face hub, or of a server that answers like one, by its name.

A hub has every public data set as Parquet, whatever it was made of, and lists the files:
GET /api/datasets/NAME/parquet/CONFIG/SPLIT, or /api/datasets/NAME/tree/REVISION/CONFIG/SPLIT of
those that a commit has. They are read by ranges, so nothing is stored, no program of a data set
runs here, and any device begins anywhere. `HF_ENDPOINT` in the environment
names another hub, `HF_TOKEN` is for data sets that are not public.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from math import ceil
from typing import Any

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
    listed = at_hub(list_of(dataset), pause_s)
    try:
        with listed.open() as reply:
            places = places_in(dataset, json.loads(reply.read(MAX_LIST_BYTES)))
    except ValueError:
        places = []
    if not places:
        raise SourceUnavailable(
            f"{listed.where} lists no files: is that the data set's name, configuration and "
            "split, and has the hub its Parquet files?"
        )
    return [at_hub(place, pause_s) for place in places]


def list_of(dataset: DataSet) -> str:
    """Where a hub lists the Parquet files of a split."""
    branch = f"tree/{dataset.revision}" if dataset.revision else "parquet"
    return f"/api/datasets/{dataset.name}/{branch}/{dataset.config}/{dataset.split}"


def places_in(dataset: DataSet, listed: Any) -> list[str]:
    """Of the files in a hub's answer, in their order; none where it is no list of files."""
    if not isinstance(listed, list):
        return []
    if not dataset.revision:
        return [f"{list_of(dataset)}/{number}.parquet" for number in range(len(listed))]
    paths = [one.get("path") for one in listed if isinstance(one, dict)]
    named = sorted(path for path in paths if isinstance(path, str) and path.endswith(".parquet"))
    return [f"/datasets/{dataset.name}/resolve/{dataset.revision}/{path}" for path in named]


def at_hub(place: str, pause_s: float = 1.0) -> Web:
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    return Web(hub + place, pause_s, os.environ.get("HF_TOKEN", ""))
