"""Parts of a text: every row in one of them, and what a device reads while leases come and go."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import islice

import pytest

from tests.answering import Answering
from tests.factories import make_recipe
from tests.rows import rows_of
from tests.trainer.test_data import numbered, serve  # noqa: F401 - a fixture
from tests.waiting import wait_for
from trainer.agent import shards
from trainer.agent.join import Api
from trainer.agent.shards import ShardHolder
from trainer.data.shards import SharedText
from trainer.grant import Lease, ShardAnswer, ShardRequest
from trainer.sources import http as http_source
from trainer.sources.base import Source
from trainer.sources.file import FileSource
from trainer.sources.http import HttpSource
from trainer.sources.places import Web

BLOCK = 500


def rows(count: int) -> list[str]:
    """Lines of many lengths, some longer than a block, so that any may begin at any byte."""
    draw = random.Random(1)
    return [f"row {i} " + "x" * draw.choice([0, 1, 2, 30, 100, 1300]) for i in range(count)]


@pytest.fixture(params=["file", "ranged", "plain"])
def source(request, tmp_path, serve, monkeypatch) -> Source:  # noqa: F811
    """Of 600 rows, as a file, behind a server with ranges and behind one without."""
    monkeypatch.setattr(http_source, "BLOCK_BYTES", BLOCK)
    content = ("\n".join(rows(600)) + "\n").encode()
    if request.param == "file":
        (tmp_path / "text").write_bytes(content)
        return FileSource(tmp_path / "text")
    return HttpSource(Web(serve(content, ranged=request.param == "ranged"), pause_s=0.01))


@pytest.mark.parametrize("of", [1, 2, 7, 64])
def test_c13_each_row_is_in_one_shard_and_no_other_whoever_reads_it(source, of):
    found = [
        [piece.document for piece in source.shard(number, of, f"order of {number}")]
        for number in range(of)
    ]
    seen = Counter(row for shard in found for row in shard)
    assert seen == Counter(row.strip() for row in rows(600))
    again = [piece.document for piece in source.shard(of - 1, of, "another order")]
    assert sorted(again) == sorted(found[-1])
    assert again != found[-1] or len(again) < 2


def test_a_web_address_is_cut_alike_with_ranges_and_without(serve, monkeypatch):  # noqa: F811
    monkeypatch.setattr(http_source, "BLOCK_BYTES", BLOCK)
    content = ("\n".join(rows(300)) + "\n").encode()
    ranged, plain = (HttpSource(Web(serve(content, ranged=ranged))) for ranged in (True, False))
    for number in range(5):
        one, other = (
            [piece.document for piece in source.shard(number, 5, "order")]
            for source in (ranged, plain)
        )
        assert one == other


def test_who_goes_on_with_a_shard_misses_nothing_and_repeats_nothing(source):
    whole = list(source.shard(1, 3, "order"))
    for stop in (1, 5, len(whole) - 1):
        begun = list(islice(source.shard(1, 3, "order"), stop))
        rest = list(source.shard(1, 3, "order", begun[-1].done))
        assert begun + rest == whole


def test_how_far_it_is_grows_to_the_total(tmp_path):
    source = FileSource(numbered(tmp_path / "rows.jsonl", 100))
    assert [piece.done for piece in source.shard(3, 4, "order")] == list(range(1, 26))
    assert {piece.total for piece in source.shard(3, 4, "order")} == {25}


# ---------------------------------------------------------------- the agent and its site
class Site(Answering):
    """Answers requests for shards with what `leases` says, one after another, the last for ever."""

    def __init__(self) -> None:
        self.leases: list[Lease | None] = [lease(0)]
        self.asked: list[ShardRequest] = []

    def answer(self, method, path, body):
        self.asked.append(ShardRequest.model_validate_json(body))
        found = self.leases.pop(0) if len(self.leases) > 1 else self.leases[0]
        reason = "" if found else "all parts are taken"
        return 200, ShardAnswer(lease=found, reason=reason).model_dump_json().encode()


class Grant:
    recipe = make_recipe()
    recipe_sha256 = recipe.sha256()


def lease(shard: int, **facts) -> Lease:
    values = {"num_shards": 4, "passes": 0, "position": 0, "valid_s": 300, "renew_s": 0.05}
    return Lease(**{"shard": shard, **values, **facts})


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(shards, "delay_s", lambda failures: 0.05)
    monkeypatch.setattr(shards, "ASK_AGAIN_S", 0.05)
    site = Site().start()
    yield site
    site.stop()


@pytest.fixture
def holder(site):
    holder = ShardHolder(Api(f"http://127.0.0.1:{site.port}", "token"), "demo", Grant)
    yield holder
    holder.leave()


@pytest.fixture
def text(tmp_path, holder):
    """Endless documents of a text of 40 rows: row i is in shard i % 4."""
    source = FileSource(numbered(tmp_path / "rows.jsonl", 40))
    shared = SharedText(source, 0, holder, "seed")
    return (row.text for row in rows_of(shared, holder))


def shard_of(row: str) -> int:
    return int(row.split()[1]) % 4


def take(text, count: int) -> list[str]:
    return list(islice(text, count))


def test_a_device_reads_one_shard_after_another_and_tells_how_far_it_is(site, holder, text):
    site.leases = [lease(2, renew_s=60), lease(0, renew_s=60), lease(3, renew_s=60, position=8)]
    assert {shard_of(row) for row in take(text, 10)} == {2}
    assert holder.words() == "part 3 of 4 of the text, 100% read"
    rows = take(text, 12)
    assert [shard_of(row) for row in rows] == [0] * 10 + [3] * 2
    assert [request.finished for request in site.asked] == [False, True, True]
    assert [request.shard for request in site.asked] == [None, 2, 0]
    holder.leave()
    last = site.asked[-1]
    assert (last.shard, last.position, last.leaving) == (3, 10, True)


def test_the_lease_is_renewed_with_the_position_while_the_device_trains(site, holder, text):
    take(text, 4)
    wait_for("renewal", lambda: site.asked[-1].position == 4)
    take(text, 2)
    wait_for("renewal", lambda: site.asked[-1].position == 6)
    assert not site.asked[-1].finished


def test_while_the_site_is_away_a_device_keeps_to_its_own_shard(site, holder, text):
    site.leases = [lease(1)]
    first = take(text, 5)
    site.stop()
    seen = first + take(text, 35)
    assert Counter(seen) == {f"row {number}": 4 for number in range(1, 40, 4)}
    assert seen[:10] != seen[10:20]
    asked = len(site.asked)
    site.leases = [lease(2)]
    site.start()
    wait_for("answer", lambda: len(site.asked) > asked and "part 3 of 4" in holder.words())
    assert site.asked[asked].finished
    assert {shard_of(row) for row in take(text, 10)} == {2}


def test_a_lease_that_went_to_another_device_is_left_at_once(site, holder, text):
    assert {shard_of(row) for row in take(text, 3)} == {0}
    site.leases = [lease(3)]
    wait_for("other lease", lambda: "part 4 of 4" in holder.words())
    assert {shard_of(row) for row in take(text, 10)} == {3}


def test_a_shard_that_another_device_had_meanwhile_is_gone_on_with_where_that_one_was(
    site, holder, text
):
    site.leases = [lease(2, renew_s=0.05)]
    mine = take(text, 3)
    site.leases = [lease(2, position=7)]
    wait_for("its answer", lambda: site.asked[-1].position == 7)
    rest = take(text, 3)
    assert {shard_of(row) for row in mine + rest} == {2} and not set(mine) & set(rest)
    assert holder.words() == "part 3 of 4 of the text, 100% read"


def test_without_a_lease_it_reads_everything_says_so_and_takes_the_first_one_it_gets(
    site, holder, text
):
    site.leases = [None]
    assert sorted(take(text, 40)) == sorted(f"row {number}" for number in range(40))
    assert holder.words() == "all of the text: all parts are taken"
    site.leases = [lease(1)]
    wait_for("lease", lambda: "part 2 of 4" in holder.words())
    assert {shard_of(row) for row in take(text, 10)} == {1}


def test_a_site_that_is_away_from_the_beginning_keeps_nobody_from_training(site, holder, text):
    site.stop()
    assert len(set(take(text, 40))) == 40
    site.start()
    wait_for("lease", lambda: "part 1 of 4" in holder.words())


def test_a_device_that_was_asleep_asks_before_it_reads_on(site, holder, text):
    site.leases = [lease(0, valid_s=0, renew_s=600), lease(1, renew_s=600)]
    assert [shard_of(row) for row in take(text, 2)] == [1, 1]


def test_more_shards_than_rows_leave_nobody_without_text(site, holder, tmp_path):
    (tmp_path / "short").write_text(json.dumps({"text": "alone"}) + "\n")
    site.leases = [lease(3, renew_s=60)]
    shared = SharedText(FileSource(tmp_path / "short"), 0, holder, "seed")
    assert [row.text for row in take(rows_of(shared, holder), 3)] == ["alone"] * 3
