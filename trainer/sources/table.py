"""Rows of a Parquet file, on disk or behind a URL: only the columns that are text are read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Any

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

    def __init__(self, place: Place, tally: Tally | None = None, column: str = "") -> None:
        """`column` has the text; without it `sources.formats` says which do."""
        super().__init__(tally)
        self._place, self._column = place, column

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
            blocks, total = [], 0
            for group, rows in _share(file, number, of):
                blocks.append(Block(total, len(rows), self._rows(file, group, rows)))
                total += len(rows)
            yield from pieces(blocks, seed, start, total)

    def num_rows(self, number: int, of: int) -> int:
        """Of a shard. Raises SourceUnavailable."""
        with self._opened() as file:
            return sum(len(rows) for _, rows in _share(file, number, of))

    def _rows(self, file: ParquetFile, group: int, rows: range | None = None) -> Iterator[str]:
        """The documents of a row group, or of some rows of it."""
        from pyarrow import ArrowException

        where = self._place.where
        names = [self._column] if self._column else FIELDS
        columns = [name for name in names if name in file.schema_arrow.names]
        batches = file.iter_batches(
            ROWS_AT_ONCE, row_groups=[group], columns=columns, use_threads=False
        )
        row = 0
        try:
            for batch in batches:
                for record in records_of(batch):
                    if rows is None or row in rows:
                        text = document_of(self._record(record))
                        self.tally.count(text, f"row {row} of row group {group} of {where}")
                        if text:
                            yield text
                    row += 1
                if rows is not None and row >= rows.stop:
                    return
        except (OSError, ArrowException) as error:
            self.tally.count(None, f"row group {group} of {where}: {error}")

    def _record(self, row: dict[str, Any] | None) -> Any:
        return {"text": row[self._column]} if row and self._column else row

    @contextmanager
    def _opened(self) -> Iterator[ParquetFile]:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        where = self._place.where
        with self._place.open() as raw:
            try:
                file = ParquetFile(raw, buffer_size=BUFFER_BYTES, page_checksum_verification=True)
                names = file.schema_arrow.names
                if not self._column:
                    check_columns(names)
                elif self._column not in names:
                    raise Unreadable(f"it has no column {self._column}, but {', '.join(names)}")
            except (OSError, ArrowException) as error:
                reason = "it is no Parquet file, or its end is damaged"
                raise SourceUnavailable(f"{where}: {reason}") from error
            except Unreadable as error:
                raise SourceUnavailable(f"{where}: {error}") from error
            with file:
                yield file


def _share(file: ParquetFile, number: int, of: int) -> Iterator[tuple[int, range]]:
    """The row groups of a shard, and which of their rows are in it."""
    num_groups = file.num_row_groups
    parts = max(1, ceil(of / max(1, num_groups)))
    for one in range(number, num_groups * parts, of):
        group, part = divmod(one, parts)
        size = file.metadata.row_group(group).num_rows
        yield group, range(size * part // parts, size * (part + 1) // parts)
