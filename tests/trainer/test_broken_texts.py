"""Damaged texts of every kind: the good documents are all used, the others counted with a place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.parquet import ParquetFile, write_table

from tests.trainer.test_kinds import HEAD, PACKERS, dump, page, table
from trainer.sources import lines as lines_file
from trainer.sources import wiki
from trainer.sources.base import Tally
from trainer.sources.kinds import TextSource
from trainer.sources.places import Disk

ROWS = [f"row {i} কলা" for i in range(40_000)]
ROOT = Path(__file__).resolve().parents[2]


def read(path: Path, content: bytes) -> tuple[list[str], Tally]:
    path.write_bytes(content)
    source = TextSource(Disk(path))
    return list(source.documents("x")), source.tally


def test_c14_broken_lines_cost_themselves_and_the_first_is_named(tmp_path):
    content = (
        b"\xef\xbb\xbfgood 1\nbad \xff\xfe\n\n   \ngo\x00od 2\n"
        b'{"text": "\\ud83d"}\n{"te\n{"text": 5}\n{"no": 1}\n{"text": ""}\n{"text": "good 3"}\n'
    )
    for name, packed in {"plain": content, **{n: p(content) for n, p in PACKERS.items()}}.items():
        found, tally = read(tmp_path / name, packed)
        assert sorted(found) == ["go\x00od 2", "good 1", "good 3"], name
        assert (tally.read, tally.broken, tally.empty) == (3, 5, 3)
        inside = "" if name == "plain" else "what is in "
        place, _, where = tally.first_broken.partition(" of ")
        assert content[int(place.removeprefix("byte ")) :].startswith((b"bad", b"{"))
        assert where == f"{inside}{tmp_path / name}"


@pytest.mark.parametrize("kind", PACKERS)
def test_c14_of_packed_text_that_breaks_off_every_whole_line_is_used(tmp_path, kind):
    packed = PACKERS[kind]("\n".join(ROWS).encode())
    found, tally = read(tmp_path / "text", packed[: len(packed) * 2 // 3])
    found.sort(key=lambda row: int(row.split()[1]))
    *whole, last = found
    assert whole == ROWS[: len(whole)] and ROWS[len(whole)].startswith(last)
    assert tally.broken == 1 and str(tmp_path / "text") in tally.first_broken
    damaged = bytearray(packed)
    damaged[len(damaged) // 2 : len(damaged) // 2 + 40] = b"\x55" * 40
    found, tally = read(tmp_path / "text", bytes(damaged))
    assert tally.broken >= 1


@pytest.mark.parametrize("kind", PACKERS)
def test_c14_a_packed_text_broken_from_the_beginning_is_counted(tmp_path, kind):
    found, tally = read(tmp_path / "text", PACKERS[kind](b"one\n")[:9])
    assert (found, tally.broken) == ([], 1)


def test_c14_a_damaged_row_group_costs_itself(tmp_path):
    rows = [f"{i:05} {'x' * (1 + i % 50)}" for i in range(600)]
    content = bytearray(table(rows, group=200))
    column = ParquetFile(pa.BufferReader(bytes(content))).metadata.row_group(1).column(0)
    middle = column.dictionary_page_offset + column.total_compressed_size // 2
    content[middle : middle + 20] = b"\xff" * 20
    found, tally = read(tmp_path / "text", bytes(content))
    assert set(rows[:200] + rows[400:]) <= set(found) <= set(rows)
    assert tally.broken == 1 and "row group 1 of" in tally.first_broken


def test_c14_a_value_that_is_no_utf_8_costs_its_row(tmp_path):
    odd = pa.array([b"good", b"bad \xff", b"", b"fine"]).view(pa.string())
    sink = pa.BufferOutputStream()
    write_table(pa.table({"text": odd}), sink)
    found, tally = read(tmp_path / "text", sink.getvalue().to_pybytes())
    assert sorted(found) == ["fine", "good"] and (tally.broken, tally.empty) == (1, 1)
    assert tally.first_broken == f"row 1 of row group 0 of {tmp_path / 'text'}"


def test_c14_a_damaged_page_of_a_dump_costs_itself(tmp_path):
    pages = [
        page("good 1"),
        page("bad \ue000").replace("\ue000", "\x01"),
        page("good 2"),
        page("cut off").removesuffix("</revision>\n  </page>\n"),
        page("good 3"),
        page("&e; is no entity").replace("&amp;e;", "&e;"),
        page("raw").replace("raw", "\udcff"),
        page(" "),
        page("good 4"),
    ]
    content = (HEAD + "".join(pages)).encode("utf-8", "surrogateescape")
    found, tally = read(tmp_path / "text", content + page("never ends")[:90].encode())
    assert sorted(found) == [f"good {i}" for i in range(1, 5)]
    assert (tally.read, tally.broken, tally.empty) == (4, 5, 1)
    assert tally.first_broken.startswith("byte ")


def test_what_is_no_article_is_left_out_of_a_dump(tmp_path):
    pages = [
        page("talk", ns=1),
        page("#REDIRECT [[B]]", more='    <redirect title="B" />\n'),
        page("body {}").replace("wikitext", "css"),
        page("article"),
    ]
    found, tally = read(tmp_path / "text", (HEAD + "".join(pages) + "</mediawiki>").encode())
    assert found == ["article"] and (tally.left_out, tally.broken) == (3, 0)


def test_the_names_a_wiki_has_for_files_and_categories_are_those_of_its_dump(tmp_path):
    text = "কলকাতা [[চিত্র:a.jpg|thumb|এক [[শহর]]]] শহর\n[[বিষয়শ্রেণী:শহর]]\n[[ভারত]]"
    found, _ = read(tmp_path / "text", dump([text]))
    assert found == ["কলকাতা শহর\nভারত"]


@pytest.mark.parametrize("kind", ["plain", *PACKERS])
def test_c07_a_long_line_comes_in_parts_and_no_conjunct_is_torn(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(lines_file, "MAX_LINE_BYTES", 3000)
    monkeypatch.setattr("trainer.sources.file.MAX_LINE_BYTES", 3000)
    blank, spaced = "ক্ষমা" * 1000, "কলা " * 1000
    too_long = json.dumps({"text": "{" * 20_000})
    content = f"short\n{blank}\n{spaced}\n{too_long}\nlast".encode()
    found, tally = read(tmp_path / "text", content if kind == "plain" else PACKERS[kind](content))
    assert {"short", "last"} <= set(found)
    parts = [part for part in found if part not in ("short", "last")]
    assert max(len(part.encode()) for part in parts) <= 3000
    assert sum(part.count("কলা") for part in parts) == 1000
    assert sum(part.count("ক্ষ") for part in parts) == 1000
    assert not [part for part in parts if part[0] in "্াি" or part.endswith("্")]
    assert tally.broken == 1 and tally.long >= len(parts) - 2


def test_a_page_that_is_too_long_is_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(wiki, "MAX_PAGE_BYTES", 1000)
    found, tally = read(tmp_path / "text", dump(["before", "x" * 5000, "after"]))
    assert sorted(found) == ["after", "before"] and (tally.long, tally.broken) == (1, 1)


BIG = """
import gzip, resource, sys
from pathlib import Path
from trainer.sources.kinds import TextSource
from trainer.sources.places import Disk
path = Path(sys.argv[1])
with gzip.open(path, "wb", compresslevel=1) as file:
    if sys.argv[2] == "dump":
        file.write(b"<mediawiki><page><ns>0</ns><revision><text>")
    for _ in range(300):
        file.write(b"x" * 2**20)
    if sys.argv[2] == "dump":
        file.write(b"</text></revision></page><page><revision><text>end</text></revision></page>")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source = TextSource(Disk(path))
count = sum(1 for _ in source.documents("x"))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(count, source.tally.long, grown // 1024)
"""


@pytest.mark.parametrize(("kind", "count"), [("line", 76), ("dump", 1)])
def test_c07_a_line_or_page_of_300_megabytes_takes_no_such_memory(tmp_path, kind, count):
    done = subprocess.run(
        [sys.executable, "-c", BIG, str(tmp_path / "big"), kind],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found, long, megabytes = map(int, done.stdout.split())
    assert abs(found - count) <= 2 and long >= 1
    assert megabytes < 150
