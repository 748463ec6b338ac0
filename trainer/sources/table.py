"""Rows of a Parquet file, on disk or behind a URL: only the columns that are text are read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING

from trainer.sources.base import Block, Piece, Source, SourceUnavailable, Tally, pieces, shuffled
from trainer.sources.formats import (
    FIELDS,
    ROWS_AT_ONCE,
    Unreadable,
    check_columns,
    document_of,
    records_of,
)
from trainer.sources.places import Place

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

BUFFER_BYTES = 2**20  # of a column, at once


class TableSource(Source):
    """A row group that is damaged is passed over and counted as one broken document."""

    def __init__(self, place: Place, tally: Tally | None = None) -> None:
        super().__init__(tally)
        self._place = place

    def documents(self, seed: str) -> Iterator[str]:
        rng = random.Random(seed)  # noqa: S311 - an order, not a secret
        with self._opened() as file:
            groups = list(range(file.num_row_groups))
            rng.shuffle(groups)
            yield from shuffled((text for one in groups for text in self._rows(file, one)), rng)

    def shard(self, number: int, of: int, seed: str, start: int = 0) -> Iterator[Piece]:
        """Row groups `number`, `number + of`, …; of fewer than `of` of them equal parts.

        A step is a row.
        """
        with self._opened() as file:
            sizes = [file.metadata.row_group(one).num_rows for one in range(file.num_row_groups)]
            parts = max(1, ceil(of / max(1, len(sizes))))
            blocks, total = [], 0
            for one in range(number, len(sizes) * parts, of):
                group, part = divmod(one, parts)
                rows = range(*(sizes[group] * edge // parts for edge in (part, part + 1)))
                blocks.append(Block(total, len(rows), self._rows(file, group, rows)))
                total += len(rows)
            yield from pieces(blocks, seed, start, total)

    def _rows(self, file: ParquetFile, group: int, rows: range | None = None) -> Iterator[str]:
        """The documents of a row group, or of some rows of it."""
        from pyarrow import ArrowException

        where = self._place.where
        columns = [name for name in FIELDS if name in file.schema_arrow.names]
        batches = file.iter_batches(
            ROWS_AT_ONCE, row_groups=[group], columns=columns, use_threads=False
        )
        row = 0
        try:
            for batch in batches:
                for record in records_of(batch):
                    if rows is None or row in rows:
                        text = document_of(record)
                        self.tally.count(text, f"row {row} of row group {group} of {where}")
                        if text:
                            yield text
                    row += 1
                if rows is not None and row >= rows.stop:
                    return
        except (OSError, ArrowException) as error:
            self.tally.count(None, f"row group {group} of {where}: {error}")

    @contextmanager
    def _opened(self) -> Iterator[ParquetFile]:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        where = self._place.where
        with self._place.open() as raw:
            try:
                file = ParquetFile(raw, buffer_size=BUFFER_BYTES, page_checksum_verification=True)
                check_columns(file.schema_arrow.names)
            except (OSError, ArrowException) as error:
                reason = "it is no Parquet file, or its end is damaged"
                raise SourceUnavailable(f"{where}: {reason}") from error
            except Unreadable as error:
                raise SourceUnavailable(f"{where}: {error}") from error
            with file:
                yield file
