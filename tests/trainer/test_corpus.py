"""Texts to make tokenizers from: broken ones are left out and counted, long ones are cut."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.trainer.archives import archived
from tests.trainer.bengali import BENGALI, EVERYTHING
from tests.trainer.test_kinds import page
from trainer.commands import main
from trainer.text import corpus as corpus_file
from trainer.text.corpus import Corpus
from trainer.text.making import make
from trainer.text.tokenizer import TokenizerError
from trainer.tokenizing import Wanted

LINES = "".join(f"{line}\n" for line in EVERYTHING)
TAR = archived("w", LINES.encode())


def read(path: Path, **options) -> tuple[list[str], Corpus]:
    corpus = Corpus([path], **options)
    return list(corpus), corpus


def test_all_kinds_of_files_in_a_folder_are_read(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "plain.txt").write_text("one\n\n{two\n")
    (tmp_path / "a.jsonl").write_text('{"text": "three"}\n\n{"prompt": "a", "answer": "b"}\n')
    (tmp_path / "table.csv").write_text("text,more\nfour,x\n")
    (tmp_path / "nameless").write_text('{"text": "five"}\nsix\n')
    (tmp_path / "packed.txt").write_bytes(gzip.compress(b"seven\n"))
    (tmp_path / "more").write_bytes(lzma.compress(b"eight\n"))
    pages = "<mediawiki>" + page("nine") + page("no article", ns=1) + "</mediawiki>"
    (tmp_path / "wiki.xml.bz2").write_bytes(bz2.compress(pages.encode()))
    table = pyarrow.table({"text": ["ten"], "more": [1]})
    pyarrow.parquet.write_table(table, tmp_path / "0000.snappy")
    (tmp_path / ".hidden").write_text("no\n")
    found, corpus = read(tmp_path)
    numbers = {"one", "{two", "three", "a\nb", "four", "five"}
    numbers |= {"six", "seven", "eight", "nine", "ten"}
    assert set(found) == numbers and corpus.seen.documents == len(numbers)
    assert corpus.seen.broken == 0 and corpus.share_read == 1.0


def test_c14_broken_bytes_cost_their_own_document_and_no_other(tmp_path):
    packed = gzip.compress("\n".join(f"row {i}" for i in range(9000)).encode(), mtime=0)
    files = {
        "middle.txt": b"good 1\nbad \xff\xfe\ngood 2\n",
        "utf16.txt": "good\n".encode("utf-16"),
        "cut.gz": packed[: len(packed) // 2],
        "named.txt": gzip.compress(b"good 3\n"),
        "nul.txt": b"go\x00od 4\n\x00\n",
        "lone.jsonl": b'{"text": "\\ud83d"}\n{"text": "good 5"}\n{"te\n["no"]\n',
        "mark.txt": b"\xef\xbb\xbfgood 6\n",
        "table.csv": b"name,age\nx,1\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found, corpus = read(tmp_path)
    rows = [text for text in found if text.startswith("row")]
    good = {"good 1", "good 2", "good 3", "go\x00od 4", "\x00", "good 5", "good 6"}
    assert set(found) - set(rows) == good and 0 < len(rows) < 9000
    assert corpus.seen.broken == 4
    assert corpus.seen.first_broken == f"line 1 of {tmp_path / 'lone.jsonl'}"
    why = {Path(name).name: words for name, words in corpus.seen.left_out.items()}
    assert set(why) == {"utf16.txt", "cut.gz", "table.csv"}
    assert why["utf16.txt"].endswith("save it as UTF-8") and "ended before" in why["cut.gz"]
    assert why["cut.gz"].endswith("; what came before is used")
    make(corpus, Wanted(size=300), tmp_path / "tokenizer.json")


def test_what_is_no_file_is_left_out_and_not_waited_for(tmp_path):
    (tmp_path / "good.txt").write_text("good\n")
    os.mkfifo(tmp_path / "pipe.txt")
    found, corpus = read(tmp_path)
    assert found == ["good"]
    assert corpus.seen.left_out == {str(tmp_path / "pipe.txt"): "it is no ordinary file"}


def test_archives_beside_texts_are_left_out_whatever_they_are_called(tmp_path, capsys):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "good.txt").write_text(LINES)
    (tmp_path / "texts" / "poems.csv").write_bytes(TAR)
    (tmp_path / "texts" / "poems.tar").write_bytes(TAR)
    words = ["--size", "300", "--out", str(tmp_path / "tokenizer.json")]
    assert main(["tokenizer", str(tmp_path / "texts"), *words]) == 0
    told = capsys.readouterr().out
    assert f"made from {len(LINES.splitlines())} documents" in told
    for name in ("poems.csv", "poems.tar"):
        assert f"Left out: {tmp_path / 'texts' / name}: it is a tar archive: unpack it" in told


def test_c07_lines_of_any_length_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_file, "MAX_LINE_BYTES", 30_000)
    text = "ক্ষমা" * 40_000
    (tmp_path / "long.txt").write_text(f"short\n{text}\nstill here\n{'কলা ' * 4000}\n")
    found, corpus = read(tmp_path)
    assert max(map(len, found)) <= corpus_file.LONGEST
    assert "".join(found) == f"short{text}still here{'কলা ' * 4000}".removesuffix(" ")
    assert (corpus.seen.documents, corpus.seen.split, corpus.seen.broken) == (4, 2, 0)
    assert corpus.seen.characters == sum(map(len, found))
    assert not [part for part in found if part.endswith("্") or part[0] in "্াি"]


def test_c07_a_long_line_that_breaks_off_or_is_json_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_file, "MAX_LINE_BYTES", 1000)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "x" * 5000}) + '\n{"text": "good"}\n')
    (tmp_path / "b.txt").write_bytes(b"y" * 5000 + b"\xff" + b"y" * 5000 + b"\nfine\n")
    found, corpus = read(tmp_path)
    assert {"good", "fine"} <= set(found)
    assert (corpus.seen.documents, corpus.seen.broken) == (2, 2)


def test_c07_a_tokenizer_comes_of_a_book_on_one_line(tmp_path, capsys):
    lines = ["কলা" * 700, "x" * 200_000, "শব্দ " * 100_000, "ক" + "া" * 100_000]
    (tmp_path / "book.txt").write_text("\n".join(lines))
    out = tmp_path / "tokenizer.json"
    assert main(["tokenizer", str(tmp_path / "book.txt"), "--size", "256", "--out", str(out)]) == 0
    assert "Long lines split: 3" in capsys.readouterr().out


def test_a_share_is_chosen_by_content_and_the_same_each_time(tmp_path):
    (tmp_path / "rows.txt").write_text("".join(f"row {i}\n" for i in range(5000)))
    (tmp_path / "back.txt").write_text("".join(f"row {i}\n" for i in reversed(range(5000))))
    one, _ = read(tmp_path / "rows.txt", share=0.2)
    other, _ = read(tmp_path / "back.txt", share=0.2)
    assert one == other[::-1] and 900 < len(one) < 1100


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "there is no text in 1 file"),
        (b" \n\n\x07\n", "there is no text in 1 file"),
        (b"\xff\n\xfe\nfine\n", "most of the 1 file is no text; 2 lines cannot be read, the first"),
        (b"PK\x03\x04\xff\xfe" * 50, "texts.txt: it is a zip archive: unpack it, or pack"),
        (b"7z\xbc\xaf" + b"words\n" * 50, "texts.txt: it is a 7z archive: unpack it, or pack"),
        ("কলা\n".encode("utf-16"), "texts.txt: it is UTF-16: save it as UTF-8"),
        (TAR, "texts.txt: it is a tar archive: unpack it, and name the text in it"),
        (gzip.compress(TAR, mtime=0), "texts.txt: it is a tar archive: unpack it"),
    ],
)
def test_an_empty_or_broken_corpus_is_refused_with_a_reason(tmp_path, content, says):
    (tmp_path / "texts.txt").write_bytes(content)
    with pytest.raises(TokenizerError, match=says):
        make(Corpus([tmp_path]), Wanted(size=300), tmp_path / "out" / "tokenizer.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "Name the files or folders"),
        (["nowhere.txt"], "nowhere.txt cannot be used: No such file"),
        (["{texts}", "--size", "60"], "--size 60: Input should be greater than or equal to 256"),
        (["{texts}", "--without", "nfkc,lower"], "--without lower: there is no such step. Steps: "),
        (["{texts}", "--megabytes", "0"], "--megabytes 0.0 makes no sense"),
        (["--preview", "{texts}"], "texts.txt is not a tokenizer"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(tmp_path, words, says, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text")))
    (tmp_path / "texts.txt").write_text(LINES)
    words = [word.format(texts=tmp_path / "texts.txt") for word in words]
    assert main(["tokenizer", *words, "--out", str(tmp_path / "tokenizer.json")]) == 1
    assert says in capsys.readouterr().err


def test_the_command_tells_how_far_it_is_and_what_came_of_it(tmp_path, capsys):
    (tmp_path / "texts.txt").write_bytes((LINES * 400).encode() + b"\xff\n")
    out, report = tmp_path / "tokenizer.json", tmp_path / "report.json"
    words = ["--size", "300", "--without", "accents,visarga", "--report", str(report)]
    assert main(["tokenizer", str(tmp_path / "texts.txt"), "--out", str(out), *words]) == 0
    told = capsys.readouterr().out
    assert "60%  looking for frequent parts of" in told and "read 5,000 documents" in told
    size = json.loads(report.read_text())["made"]["size"]
    assert f"{out} has {size} tokens, made from 6,000 documents" in told
    assert "Lines that cannot be read: 1, first line 6001 of" in told
    found = json.loads(report.read_text())
    assert found["complete"] and 300 >= found["made"]["size"] > 200
    assert found["made"]["seen"]["broken"] == 1 and found["made"]["unknown_share"] == 0


def test_the_preview_reads_standard_input_and_prints_json(tmp_path):
    make(_written(tmp_path), Wanted(size=400), tmp_path / "tokenizer.json")
    done = subprocess.run(
        [sys.executable, "-m", "trainer", "tokenizer", "--preview", tmp_path / "tokenizer.json"],
        input=BENGALI[0].encode() + b" \xff",
        capture_output=True,
    )
    shown = json.loads(done.stdout)
    assert shown["normal"] == BENGALI[0] and shown["unknown_share"] == 0
    assert "torch" not in done.stderr.decode()


def _written(folder: Path) -> Corpus:
    (folder / "texts.txt").write_text(LINES)
    return Corpus([folder / "texts.txt"])


def test_making_a_tokenizer_loads_no_torch():
    check = (
        "import sys; import trainer.text.making, trainer.text.preview;"
        "print([name for name in ('torch', 'hivemind', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.soak
def test_c07_lines_of_millions_of_characters_take_less_than_a_gigabyte(tmp_path):
    lines = ["ক্ষ" * 700, "বাংলা" * 40_000, "শব্দ " * 1_000_000, "ক" + "া" * 1_000_000, "ক্ষমা" * 10**6]
    (tmp_path / "book.txt").write_text("\n".join(lines))
    words = [tmp_path / "book.txt", "--size", "400", "--out", tmp_path / "tokenizer.json"]
    program = subprocess.Popen(
        [sys.executable, "-m", "trainer", "tokenizer", *words], stdout=subprocess.PIPE, text=True
    )
    said = program.stdout.read()
    _, status, used = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0 and "Long lines split: 4" in said
    assert used.ru_maxrss * 1024 < 10**9
