"""Data sets by their name: texts to learn from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from tests.trainer.hub_stand_in import Hub, serving
from tests.trainer.test_kinds import ROWS, table
from trainer.data.mixture import open_source
from trainer.recipe import DataSet, Text
from trainer.sources.base import SourceUnavailable
from trainer.sources.hub import HubSource

OWN = "org/texts", "bn", "train"
PLACE = "/api/datasets/{}/parquet/{}/{}".format(*OWN)


@pytest.fixture
def hub(monkeypatch) -> Iterator[type[Hub]]:
    """Of three files with all rows in the column `content`, and in groups of 50."""
    parts = [ROWS[:300], ROWS[300:310], ROWS[310:]]
    with serving(monkeypatch) as found:
        found.files[PLACE] = [table([""] * len(rows), group=50, content=rows) for rows in parts]
        yield found


def named(**more) -> DataSet:
    return DataSet(name=OWN[0], config=OWN[1], split=OWN[2], **{"column": "content", **more})


@pytest.mark.parametrize("of", [1, 2, 5, 64])
def test_c13_each_row_of_a_data_set_is_in_one_shard_and_resumed_exactly(hub, of):
    source = HubSource(named(), pause_s=0.01)
    found = [list(source.shard(number, of, "order")) for number in range(of)]
    assert Counter(piece.document for shard in found for piece in shard) == Counter(ROWS)
    whole = max(found, key=len)
    number = found.index(whole)
    for stop in (1, len(whole) // 2, len(whole) - 1):
        begun = list(islice(source.shard(number, of, "order"), stop))
        assert begun + list(source.shard(number, of, "order", begun[-1].done)) == whole
    assert whole[-1].done == whole[-1].total


def test_a_commit_of_a_data_set_is_read_as_it_was(hub):
    old = "0f" * 20
    listed = [{"type": "file", "path": f"{OWN[1]}/{OWN[2]}/{n}.parquet"} for n in (1, 0)]
    listed += [{"type": "file", "path": f"{OWN[1]}/{OWN[2]}/notes.md"}]
    hub.pages[f"/api/datasets/{OWN[0]}/tree/{old}/{OWN[1]}/{OWN[2]}"] = json.dumps(listed).encode()
    for number, rows in enumerate((ROWS[:5], ROWS[5:8])):
        place = f"/datasets/{OWN[0]}/resolve/{old}/{OWN[1]}/{OWN[2]}/{number}.parquet"
        hub.pages[place] = table([""] * len(rows), group=50, content=rows)
    source = HubSource(named(revision=old), pause_s=0.01)
    assert sorted(source.documents("x")) == sorted(ROWS[:8])
    assert [len(list(source.shard(number, 2, "x"))) for number in (0, 1)] == [5, 3]
    with pytest.raises(SourceUnavailable, match="404"):
        list(HubSource(named(revision="a0" * 20), pause_s=0.01).documents("x"))


def test_a_recipe_names_a_data_set_and_a_pass_has_each_row_once(hub):
    text = Text(kind="datasets", dataset=named())
    source = open_source(Text.model_validate_json(text.model_dump_json()), None)
    orders = [list(source.documents(seed)) for seed in "aab"]
    assert sorted(orders[0]) == sorted(ROWS) and orders[0] == orders[1] != orders[2]
    assert source.tally.read == 3 * len(ROWS)


def test_a_token_goes_to_the_hub_and_not_to_where_it_refers(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert len(list(HubSource(named(), pause_s=0.01).documents("x"))) == len(ROWS)
    assert {token for path, token in hub.asked if path.startswith("/api/")} == {"Bearer hf_secret"}
    assert {token for path, token in hub.asked if path.startswith("/store/")} == {None}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"column": "absent"}, "it has no column absent, but text, content"),
        ({"name": "org/other"}, "other/parquet/bn/train: HTTP Error 404"),
    ],
)
def test_a_data_set_that_is_not_there_is_an_error_with_its_address(hub, changed, says):
    dataset = named().model_copy(update=changed)
    with pytest.raises(SourceUnavailable, match=says):
        next(HubSource(dataset, pause_s=0.01).documents("x"))


def test_a_hub_without_files_is_asked_again_the_next_time(hub):
    files, hub.files[PLACE] = hub.files[PLACE], []
    source = HubSource(named(), pause_s=0.01)
    with pytest.raises(SourceUnavailable, match="lists no files"):
        next(source.shard(0, 1, "x"))
    hub.files[PLACE] = files
    assert len(list(source.shard(0, 1, "x"))) == len(ROWS)


@pytest.mark.parametrize("text", [{"kind": "datasets"}, {"kind": "datasets", "url": "http://x"}])
def test_a_text_of_a_hub_without_a_name_is_refused(text):
    with pytest.raises(ValueError, match="does not say where it is"):
        Text(**text)
