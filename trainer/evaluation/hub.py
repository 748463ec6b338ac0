"""Labelled data of a hub by their name: words with tags, or texts with labels.

A column of labels has names, or numbers whose names stand in the Parquet files themselves (the
library `datasets` writes them there) or in the head of the data set's README.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from trainer.evaluation.labelled import DataError, Example, Sentence, Split, cut_in_two
from trainer.parts import DataSet, first_problem
from trainer.sources.base import SourceUnavailable
from trainer.sources.hub import at_hub, files_of
from trainer.sources.places import Web

COLUMNS = {"tags": ("tokens", "ner_tags"), "classes": ("text", "label")}
MAX_README_BYTES = 2**20
OF_ANOTHER_FORM = (AttributeError, LookupError, TypeError, ValueError, RecursionError)


def read(words: Sequence[str], task: str, pause_s: float = 1.0) -> Split:
    """`words`: a data set's NAME or NAME@REVISION, its configuration, and the splits to learn from
    and for the test; of one split a fifth is the test. One with a comma is the columns of words and
    tags, or of texts and labels.

    Rows without a word are left out, and counted. Raises DataError and SourceUnavailable.
    """
    name, more = words[0], [word for word in words[1:] if "," not in word]
    config, splits = (more[0] if more else "default"), (more[1:] or ["train", "test"])
    if len(splits) > 2:
        raise DataError(f"{' '.join(words)}: one split, or one to learn from and one for the test")
    try:
        parts = [DataSet.called(name, config=config, split=split) for split in splits]
    except ValidationError as error:
        raise DataError(f"{' '.join(words)} names no data set: {first_problem(error)}") from error
    named = _columns(words[1:], task)
    tables = [list(_rows(part, named, task, pause_s)) for part in parts]
    kept = [[row for row in rows if row is not None] for rows in tables]
    for part, rows in zip(parts, kept, strict=True):
        if not rows:
            raise DataError(f"{part.split} of {name} has no row with a word")
    left_out = sum(map(len, tables)) - sum(map(len, kept))
    split = Split(kept[0], kept[1]) if len(kept) == 2 else cut_in_two(kept[0], name)
    return split._replace(left_out=left_out)


def _columns(words: Sequence[str], task: str) -> tuple[str, ...]:
    named = [tuple(word.split(",")) for word in words if "," in word]
    if len(named) > 1 or any(len(pair) != 2 or not all(pair) for pair in named):
        raise DataError(f"{' '.join(words)}: two columns, like {','.join(COLUMNS[task])}")
    return named[0] if named else COLUMNS[task]


def _rows(
    part: DataSet, columns: tuple[str, ...], task: str, pause_s: float
) -> Iterator[Sentence | Example | None]:
    """None for one without a word."""
    names = None
    number = 0
    for place in files_of(part, pause_s):
        table = _table(place, columns)
        names = names or _names(part, table, columns[1], pause_s)
        for first, second in zip(*(table[column].to_pylist() for column in columns), strict=True):
            number += 1
            where = f"row {number} of {part.split} of {part.name}"
            yield (_sentence if task == "tags" else _example)(where, first, second, names)


def _table(place: Web, columns: tuple[str, ...]) -> Any:
    """These columns of a Parquet file, and what it says of them. Raises SourceUnavailable."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    with place.open() as raw:
        try:
            file = ParquetFile(raw)
            known = file.schema_arrow.names
            if lacking := [column for column in columns if column not in known]:
                raise DataError(
                    f"{place.where} has no column {lacking[0]}, but {', '.join(known)}: "
                    f"name two of them, like {','.join(columns)}"
                )
            return file.read(columns=list(columns), use_threads=False)
        except (OSError, ArrowException) as error:
            raise SourceUnavailable(f"{place.where} is no whole Parquet file: {error}") from error


def _sentence(where: str, words: Any, tags: Any, names: list[str] | None) -> Sentence | None:
    if not (isinstance(words, list) and isinstance(tags, list) and len(words) == len(tags)):
        raise DataError(f"{where}: a list of words and one of as many tags were expected")
    if not all(isinstance(word, str) for word in words):
        raise DataError(f"{where}: {words!r:.80} are no words")
    if any(isinstance(tag, int) for tag in tags) and names is None:
        raise DataError(
            f"{where}: its tags are numbers, and neither the file nor the data set's README.md "
            "says what they are called"
        )
    found = tuple(_named(where, tag, names) for tag in tags)
    return Sentence(tuple(words), found) if words else None


def _example(where: str, text: Any, label: Any, names: list[str] | None) -> Example | None:
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    if not isinstance(text, str):
        raise DataError(f"{where}: {text!r:.80} is no text")
    return Example(text.strip(), _named(where, label, names))


def _named(where: str, label: Any, names: list[str] | None) -> str:
    """What a label is called; a class may be a number without a name."""
    if isinstance(label, str) and label.strip():
        return label.strip()
    if isinstance(label, int) and (label >= 0 if names is None else 0 <= label < len(names)):
        return str(label) if names is None else names[label]
    raise DataError(
        f"{where}: {label!r:.80} is no label. -1 stands for labels that are kept secret: name "
        "another split for the test"
    )


def _names(part: DataSet, table: Any, column: str, pause_s: float) -> list[str] | None:
    """Of numbers, where somebody says them."""
    try:
        known = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
        features = known.get("info", {}).get("features", {})
        if found := _names_in(features.get(column)):
            return found
    except (ValueError, AttributeError):
        pass  # somebody else's metadata
    from pyarrow import types

    kind = table.schema.field(column).type
    is_number = types.is_integer(getattr(kind, "value_type", kind))
    return _names_in_readme(part, column, pause_s) if is_number else None


def _names_in(feature: Any) -> list[str] | None:
    """As `datasets` writes a ClassLabel, alone or in a list, in JSON or in the head of a README."""
    if not isinstance(feature, dict):
        return None
    names = feature.get("names")
    if isinstance(names, dict):  # {"0": …, "1": …}
        names = [names.get(str(number), names.get(number)) for number in range(len(names))]
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        return names
    return next((found for one in feature.values() if (found := _names_in(one))), None)


def _names_in_readme(part: DataSet, column: str, pause_s: float) -> list[str] | None:
    """None where its head cannot be read, or has another form than that of `datasets`."""
    import yaml

    try:
        with at_hub(f"/datasets/{part.name}/raw/main/README.md", pause_s).open() as reply:
            text = reply.read(MAX_README_BYTES).decode(errors="replace")
        head: Any = yaml.safe_load(text.split("---")[1]) if text.startswith("---") else None
        return _names_in_head(head["dataset_info"], part.config, column)
    except (SourceUnavailable, yaml.YAMLError, *OF_ANOTHER_FORM):
        return None


def _names_in_head(configs: Any, called: str, column: str) -> list[str] | None:
    for config in configs if isinstance(configs, list) else [configs]:
        if config.get("config_name", "default") != called:
            continue
        for feature in config.get("features", ()):
            if feature.get("name") == column:
                return _names_in({key: one for key, one in feature.items() if key != "name"})
    return None
