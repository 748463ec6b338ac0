"""Texts of every kind at every place: packed lines, tables and dumps, each document once."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from collections import Counter
from itertools import islice
from xml.sax.saxutils import escape

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.factories import make_recipe
from tests.trainer.test_data import serve  # noqa: F401 - a fixture
from trainer.data.mixture import Mixture, open_source
from trainer.recipe import Text
from trainer.sources import http as http_source
from trainer.sources import stream
from trainer.sources.base import Source, SourceUnavailable
from trainer.sources.file import FileSource
from trainer.sources.kinds import TextSource
from trainer.sources.places import Disk, Web

ROWS = [f"row {i} " + "কলা " * (i % 7) + "." for i in range(700)]
PACKERS = {
    "gz": gzip.compress,
    "bz2": lambda content: bz2.compress(content, compresslevel=1),
    "xz": lzma.compress,
    "zst": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
}
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="bn">
<siteinfo><namespaces><namespace key="6" case="first-letter">চিত্র</namespace>
<namespace key="14" case="first-letter">বিষয়শ্রেণী</namespace></namespaces></siteinfo>
"""


def page(text: str, title: str = "A", ns: int = 0, more: str = "") -> str:
    return (
        f"  <page>\n    <title>{title}</title>\n    <ns>{ns}</ns>\n{more}    <revision>"
        f'<model>wikitext</model><text bytes="1">{escape(text)}</text></revision>\n  </page>\n'
    )


def dump(rows: list[str]) -> bytes:
    return (HEAD + "".join(map(page, rows)) + "</mediawiki>\n").encode()


def json_lines(rows: list[str]) -> bytes:
    return "".join(json.dumps({"text": row}) + "\n" for row in rows).encode()


def table(rows: list[str], group: int = 64, **columns: list) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"text": rows, **columns}), sink, row_group_size=group)
    return sink.getvalue().to_pybytes()


CONTENTS = {
    "lines": lambda: "\n".join(ROWS).encode(),
    "gz": lambda: gzip.compress(json_lines(ROWS)),
    "bz2": lambda: b"".join(
        bz2.compress(json_lines(ROWS[i : i + 100])) for i in range(0, 700, 100)
    ),
    "xz": lambda: lzma.compress("\n".join(ROWS).encode()),
    "zst": lambda: PACKERS["zst"](json_lines(ROWS)),
    "parquet": lambda: table(ROWS),
    "one group": lambda: table(ROWS, group=5000, other=list(range(700))),
    "dump": lambda: dump(ROWS),
    "packed dump": lambda: bz2.compress(dump(ROWS)),
}


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    return {name: make() for name, make in CONTENTS.items()}


@pytest.fixture(params=["disk", "ranged", "plain"])
def placed(request, tmp_path, serve):  # noqa: F811
    """Puts a text on disk, behind a server with ranges, or behind one without."""

    def put(content: bytes, breaks: tuple[int, ...] = ()) -> Source:
        if request.param == "disk":
            (tmp_path / "text").write_bytes(content)
            return TextSource(Disk(tmp_path / "text"))
        url = serve(content, ranged=request.param == "ranged", breaks=list(breaks))
        return TextSource(Web(url, pause_s=0.01))

    put.ranged = request.param != "plain"
    return put


@pytest.mark.parametrize("kind", CONTENTS)
def test_c13_each_document_of_any_kind_is_in_one_shard_and_resumed_exactly(
    placed, contents, kind, monkeypatch
):
    monkeypatch.setattr(stream, "BLOCK_ITEMS", 40)
    monkeypatch.setattr(http_source, "BLOCK_BYTES", 500)
    if not placed.ranged and kind in ("parquet", "one group"):
        with pytest.raises(SourceUnavailable, match="gives no parts of it"):
            next(placed(contents[kind]).documents("x"))
        return
    source = placed(contents[kind])
    for of in (1, 3, 10):
        found = [list(source.shard(number, of, "order")) for number in range(of)]
        assert Counter(piece.document for shard in found for piece in shard) == Counter(ROWS)
        if of > 1:
            assert max(map(len, found)) < 2.2 * len(ROWS) / of
    whole = found[1]
    assert [one.document for one in whole] != [
        one.document for one in source.shard(1, 10, "another order")
    ]
    for stop in (1, len(whole) // 2, len(whole) - 1):
        begun = list(islice(source.shard(1, 10, "order"), stop))
        assert begun + list(source.shard(1, 10, "order", begun[-1].done)) == whole


@pytest.mark.parametrize("kind", CONTENTS)
def test_c13_a_pass_has_each_document_once_in_a_seeded_order(tmp_path, contents, kind):
    (tmp_path / "text").write_bytes(contents[kind])
    source = TextSource(Disk(tmp_path / "text"))
    orders = [list(source.documents(seed)) for seed in "aab"]
    assert sorted(orders[0]) == sorted(ROWS) and orders[0] == orders[1] != orders[2]
    assert len(set(orders[0][:100]) & set(orders[2][:100])) < 35
    assert source.tally.read == 3 * len(ROWS) and source.tally.broken == 0


@pytest.mark.parametrize("kind", ["gz", "zst", "packed dump"])
def test_a_packed_text_comes_whole_over_broken_connections(placed, contents, kind):
    content = contents[kind]
    source = placed(content, breaks=(len(content) // 3, len(content) // 2, 10))
    assert sorted(source.documents("x")) == sorted(ROWS)


def test_a_table_comes_whole_over_broken_connections(serve):  # noqa: F811
    rows = [random.Random(i).randbytes(300).hex() for i in range(2000)]
    url = serve(table(rows), breaks=[400_000, 90_000, 10])
    assert sorted(TextSource(Web(url, pause_s=0.01)).documents("x")) == sorted(rows)


@pytest.mark.parametrize("kind", ["gz", "parquet"])
def test_a_server_that_dies_for_good_is_named(serve, contents, kind):  # noqa: F811
    url = serve(contents[kind], breaks=[0] * 20)
    with pytest.raises(SourceUnavailable, match=url):
        list(TextSource(Web(url, pause_s=0.01)).documents("x"))


def test_the_kinds_are_told_by_what_is_in_a_file_and_open_from_a_recipe(tmp_path, contents):
    for name, kind in {"a.txt": "gz", "b.gz": "lines", "c": "parquet", "d.jsonl": "bz2"}.items():
        (tmp_path / name).write_bytes(contents[kind])
        text = Text(kind="local", path=str(tmp_path / name))
        assert sorted(open_source(text, None).documents("x")) == sorted(ROWS)
    recipe = make_recipe()
    assert sorted(open_source(recipe.texts[0], tmp_path / "c").documents("x")) == sorted(ROWS)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("one\ntwo\n".encode("utf-16"), "UTF-16: save it as UTF-8"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b'<?xml version="1.0"?><rss></rss>', "XML, and no dump"),
        (b"<!DOCTYPE html><html></html>", "XML or HTML with a document type"),
        (b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><mediawiki>', "document type"),
        (b"a" * 257 + b"ustar" + b"\0" * 600, "a tar archive"),
        (gzip.compress(gzip.compress(b"text")), "packed twice"),
        (gzip.compress(table(["x"])), "packed twice"),
        (b"PAR1 and nothing more", "no Parquet file"),
        (table(["x"])[:-6], "no Parquet file"),
    ],
)
def test_what_is_no_text_is_refused_with_a_reason(tmp_path, content, says):
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(SourceUnavailable, match=says):
        list(TextSource(Disk(tmp_path / "text")).documents("x"))


def test_a_table_without_text_and_lines_called_parquet_are_refused(tmp_path):
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"name": ["x"]}), sink)
    (tmp_path / "text").write_bytes(sink.getvalue().to_pybytes())
    with pytest.raises(SourceUnavailable, match="it has the columns name"):
        list(TextSource(Disk(tmp_path / "text")).documents("x"))
    (tmp_path / "text.parquet").write_bytes(b"lines\n")
    with pytest.raises(SourceUnavailable, match="does not begin like one"):
        list(TextSource(Disk(tmp_path / "text.parquet")).documents("x"))


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path):
    source = TextSource(Disk(tmp_path / "gone"))
    with pytest.raises(SourceUnavailable, match="gone: No such file"):
        next(iter(Mixture([source], [1.0], "seed")))
    (tmp_path / "gone").write_text("back\n")
    assert list(source.documents("x")) == ["back"]
    assert isinstance(source._told, FileSource)
